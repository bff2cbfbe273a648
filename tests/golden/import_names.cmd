# Runs whose ranges have other names, where their idle time comes from, and mapping files.
for run in plain_1f1b plain_1f1b_stack plain_gpipe; do cp -r ../traces/kineto/$run "$OUT"; done
cp ../traces/kineto/rank*.json.gz "$OUT"
cd "$OUT"
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
try import kineto plain_1f1b/rank0.json.gz plain_1f1b/rank1.json.gz --out mine.json --program mine.slp
cat mine.slp
try simulate mine.json --program mine.slp --quiet
# Where the idle time of a measured run comes from.
try import kineto plain_1f1b/rank0.json.gz plain_1f1b/rank1.json.gz --idle --quiet
try import kineto plain_1f1b_stack/rank0.json.gz plain_1f1b_stack/rank1.json.gz --idle --quiet
try import kineto plain_gpipe/rank0.json.gz plain_gpipe/rank1.json.gz --idle
try import kineto rank0.json.gz rank1.json.gz --idle --quiet
try import kineto rank0.json.gz rank1.json.gz --json -
# Ranges of one's own, in a mapping file.
for rank in 0 1; do
  gzip -dc plain_gpipe/rank$rank.json.gz |
    sed 's/"Forward \([0-9]*\)"/"fw mb=\1"/; s/"Backward \([0-9]*\)"/"bw mb=\1"/' > own$rank.json
done
cat > names.json <<'EOF'
{"format": "stageline-names 1", "rules": [
  {"pattern": "^fw mb=(?<microbatch>\\d+)$", "is": "forward"},
  {"pattern": "^bw mb=(?<microbatch>\\d+)$", "is": "backward"}]}
EOF
try import kineto own0.json own1.json --names names.json --idle --quiet
try import kineto own0.json own1.json --names megatron
try import kineto own0.json own1.json --names megatrom
try import kineto own0.json own1.json --names no_such.json
sed 's/forward"/foward"/' names.json > typo.json
try import kineto own0.json own1.json --names typo.json
head -n 2 names.json > cut.json
try import kineto own0.json own1.json --names cut.json
