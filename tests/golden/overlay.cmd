# A model above a real run, a Chrome trace beside an outcome, and what is refused.
cp ../traces/kineto/rank*.json.gz "$OUT"
cd "$OUT"
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
stageline import kineto rank0.json.gz rank1.json.gz --out mine.json --program mine.slp --quiet
stageline simulate mine.json --program mine.slp --json model.json --timeline --quiet > simulated.txt
try overlay model.json --measured rank0.json.gz rank1.json.gz --top 5 --svg both.svg --json all.json
head -n 8 both.svg | cut -c 1-160
head -n 40 all.json
try overlay model.json rank0.json.gz rank1.json.gz --top 0 --step 0 --quiet
stageline simulate uniform:layers=4 --devices 2 --json a.json --timeline --quiet > simulated.txt
stageline draw uniform:layers=4,forward=2ms --devices 2 --schedule gpipe --chrome b.json --quiet
try overlay a.json b.json --top 3
gzip b.json
try overlay b.json.gz a.json --top 1 --quiet
try overlay a.json
try overlay a.json model.json b.json.gz
try overlay a.json --measured b.json.gz rank0.json.gz
try overlay a.json mine.slp
try overlay a.json rank0.json.gz
try overlay a.json no_such.json
try overlay model.json --measured rank0.json.gz rank1.json.gz --step 3
try overlay a.json b.json.gz --json - --svg -
try overlay a.json b.json.gz --theme dark
stageline simulate uniform:layers=4 --devices 2 --json short.json --quiet > simulated.txt
try overlay short.json a.json
# A Chrome trace says its steps, also where every micro-batch updates.
stageline simulate uniform:layers=8 --schedule pipedream --devices 4 --steps 2 --json p.json --timeline --quiet > simulated.txt
stageline draw uniform:layers=8 --schedule pipedream --devices 4 --steps 2 --chrome p.chrome.json --quiet
try overlay p.json p.chrome.json --top 1
