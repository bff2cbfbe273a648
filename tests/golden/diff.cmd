# Two programs, a program and what ran, two timelines.
cp ../traces/kineto/rank*.json.gz deadlock.slp "$OUT"
cd "$OUT"
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
for schedule in 1f1b gpipe; do
  stageline program uniform:layers=4 --schedule $schedule --devices 4 --microbatches 4 --out $schedule.slp
done
try diff 1f1b.slp gpipe.slp
try diff - gpipe.slp --quiet < 1f1b.slp
try diff 1f1b.slp gpipe.slp --trace uniform:layers=4,output=1MB --link 1GB/s --json -
try diff 1f1b.slp 1f1b.slp --quiet
sed 's/correction: none/correction: moving_average/; s/2B1 2F3/2F3 2B1/' 1f1b.slp > edited.slp
try diff 1f1b.slp edited.slp
stageline program uniform:layers=4 --schedule 1f1b --devices 2 --microbatches 6 --out small.slp
try diff 1f1b.slp small.slp --quiet
stageline simulate uniform:layers=4 --program 1f1b.slp --json run.json --timeline --quiet > simulated.txt
try diff run.json gpipe.slp
stageline draw uniform:layers=4,forward=2ms --program 1f1b.slp --chrome run.trace.json --quiet
try diff run.json run.trace.json
stageline import kineto rank0.json.gz rank1.json.gz --program mine.slp --quiet
try diff mine.slp rank0.json.gz rank1.json.gz --quiet
try diff rank0.json.gz rank1.json.gz --and rank0.json.gz rank1.json.gz --quiet
try diff deadlock.slp 1f1b.slp --quiet
try diff 1f1b.slp
try diff 1f1b.slp no_such.slp
try diff 1f1b.slp rank0.json.gz
try diff run.json run.trace.json --trace uniform:layers=4
try diff 1f1b.slp gpipe.slp --partition uniform
sed 's/1F0/1G0/' 1f1b.slp > wrong.slp
try diff 1f1b.slp wrong.slp
# Settings that are in no list of ops.
sed 's/^weights: flush/&\nrecompute: late\ndata_ranks: 2/' 1f1b.slp > late.slp
try diff 1f1b.slp late.slp --quiet
