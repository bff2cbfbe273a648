# What a command writes is none of what it reads, no other of its outputs, and can be written: said before the work.
evidence=$(pwd)/../evidence/small.evidence.json
cd "$OUT"
try() {
  echo "\$ stageline $*"
  stageline "$@" > said 2>&1
  code=$?
  head -3 said
  echo "→ exit $code"
}
stageline import uniform:layers=4,forward=1ms --out t.json --quiet
cp t.json before.json
ln -s t.json link.json
ln t.json hard.json
ln -s later other
for out in t.json ./t.json link.json hard.json; do
  try simulate t.json --schedule gpipe --devices 2 --json $out
done
try compare link.json --schedule gpipe --devices 2 --svg t.json
try draw t.json --schedule gpipe --devices 2 --svg x --chrome x
try draw t.json --schedule gpipe --devices 2 --svg later --chrome other
try draw t.json --schedule gpipe --devices 2 --svg x --chrome "$OUT/./x"
try import t.json --out t.json
cmp t.json before.json && echo kept
try simulate t.json --schedule gpipe --devices 2 --json none/a.json
try simulate t.json --schedule gpipe --devices 2 --json t.json/a.json
try draw t.json --schedule gpipe --devices 2 --quiet --svg /dev/null --chrome /dev/null
try reproduce --output t.json/page
# A word that holds a file's name, a page that nobody named, files beside a prefix, in a folder, in a sweep file.
cp t.json c.json
try compare t.json --cluster 'c.json*2' --json c.json
cp t.json stageline-report.html
try report stageline-report.html --devices 2
try report t.json --devices 2 --json ./stageline-report.html
cp t.json 'p[1].groups.json'
try program 'p[1].groups.json' --devices 2 --format chakra --out 'p[1]'
mkdir runs
cp t.json runs/own.json
ln -s own.json runs/table.csv.gz
try sweep runs/own.json --axis devices=1,2 --out runs --merge
mkdir runs2
try sweep t.json --axis devices=1,2 --out runs2 --json runs2/sweep.json
try sweep t.json --axis devices=1,2 --out page --json t.json
echo '{"format": "stageline-sweep 1", "fixed": {"trace": "t.json"}, "axes": {"devices": [1, 2]}}' > asked.json
try sweep asked.json --out page --json t.json
try sweep asked.json --out asked.json/runs
try phase t.json --schedule 1f1b,gpipe --x microbatches=2,4 --y memory=1GB,2GB --devices 2 --json t.json
mkdir page
cp "$evidence" page/report.md
try replay page/report.md --report page
try replay page/none.json --report page --json page/./step.svg
cmp t.json before.json && echo kept
ls
