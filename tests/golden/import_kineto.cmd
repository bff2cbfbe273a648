# A real profile of two ranks: its costs as a trace, and the program that ran, which runs again.
cp ../traces/kineto/rank*.json.gz ../traces/kineto/one_device/*.json.gz "$OUT"
cd "$OUT"
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
try import kineto rank0.json.gz rank1.json.gz --batch 128 --out mine.json --program mine.slp
cat mine.json mine.slp
try simulate mine.json --program mine.slp --quiet
# Bytes that no profile says are unknown: in every table, and whether it fits.
try compare mine.json --devices 2 --schedule gpipe,1f1b,pipedream --memory 8GB --link 1GB/s,5us
try costs mine.json --quiet
try draw mine.json --devices 2 --svg drawn.svg --quiet
grep -c 'memory by device' drawn.svg
# One device's profile as the layers of its model, which a plan cuts.
try import kineto plain.json.gz --layers --batch 4 --out layers.json
try simulate layers.json --devices 2 --link 10GB/s,5us --quiet
try import kineto checkpoint.json.gz --layers --out again.json
try import kineto checkpoint_reentrant.json.gz --layers --out - --quiet
try import kineto plain.json.gz checkpoint.json.gz --layers
try import kineto plain.json.gz --layers --idle
try import kineto rank0.json.gz --layers
try import kineto rank0.json.gz --program - --quiet
try import kineto rank0.json.gz rank0.json.gz
head -c 3000 rank1.json.gz > cut.json.gz
try import kineto rank0.json.gz cut.json.gz
gzip -dc rank1.json.gz | sed 's/PP:1F0/PP:1G0/' > unknown.json
try import kineto rank0.json.gz unknown.json
try import kineto mine.json
try import kineto mine.slp
try import kineto rank0.json.gz rank1.json.gz --out - --program -
try import kineto
try import
