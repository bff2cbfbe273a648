# What a command writes is none of what it reads, no other of its outputs, and can be written: said before the work.
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
try import t.json --out t.json
cmp t.json before.json && echo kept
try simulate t.json --schedule gpipe --devices 2 --json none/a.json
try simulate t.json --schedule gpipe --devices 2 --json t.json/a.json
try draw t.json --schedule gpipe --devices 2 --quiet --svg /dev/null --chrome /dev/null
try reproduce --output t.json/page
ls
