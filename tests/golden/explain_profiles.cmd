# What the ranks of a recorded run did, its picture, and the run held against a prediction; what cannot be asked.
cp ../traces/kineto/rank*.json.gz "$OUT"
cd "$OUT"
try() {
  echo "\$ stageline $*"
  stageline "$@" 2>&1
  echo "→ exit $?"
}
try explain rank0.json.gz rank1.json.gz
try explain rank0.json.gz rank1.json.gz --quiet --json - | head -n 40
try explain uniform:layers=4,forward=5ms,input_grad=5ms,weight_grad=5ms rank0.json.gz rank1.json.gz --devices 2 --quiet | head -n 4
try draw rank0.json.gz rank1.json.gz --columns 60
try draw rank0.json.gz rank1.json.gz --svg run.svg --chrome run.json
grep -c '<title>' run.svg
try explain rank0.json.gz
try explain rank0.json.gz rank1.json.gz --tp 2
try explain rank0.json.gz rank1.json.gz --measured 3s
try explain rank0.json.gz run.svg
try explain uniform:layers=4 run.svg --devices 2
try draw rank0.json.gz rank1.json.gz --schedule gpipe
try draw rank0.json.gz rank1.json.gz --html run.html
try draw rank0.json.gz rank1.json.gz --svg again.svg --panels memory
try draw uniform:layers=4 rank1.json.gz --devices 2
