# Stored measurements, predicted again: the summary, the page, and what has become worse.
cp ../evidence/small.evidence.json "$OUT/evidence.json"
cd "$OUT"
try() {
  echo "\$ stageline replay $*"
  stageline replay "$@"
  echo "→ exit $?"
}
try evidence.json --report page --json all.json --summary kept.json
ls page
cat page/report.md
cat kept.json
try evidence.json --against kept.json
sed 's/"forward_us": 1000/"forward_us": 1100/' evidence.json > slower.json
try slower.json --against kept.json
try slower.json --against kept.json --json - > /dev/null
try
try no_such.json
try kept.json
try evidence.json --against evidence.json
try evidence.json --json - --summary -
stageline replay evidence.json --json - > plain.json
gzip -n evidence.json
stageline replay evidence.json.gz --json - | cmp plain.json -
echo "→ exit $?, the same of gzip data"
head -c 200 evidence.json.gz > cut.json.gz
try cut.json.gz
gzip -dc evidence.json.gz > evidence.json
try evidence.json --report evidence.json
sed 's/"schedule": "naive"/"schedule": "naif"/' evidence.json > misspelled.json
try misspelled.json
sed 's/"busy_ps": \[12000000000, /"busy_ps": [/' evidence.json > short.json
try short.json
