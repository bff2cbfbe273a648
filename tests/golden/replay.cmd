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
try evidence.json --report evidence.json
sed 's/"schedule": "naive"/"schedule": "naif"/' evidence.json > misspelled.json
try misspelled.json
sed 's/"busy_ps": \[12000000000, /"busy_ps": [/' evidence.json > short.json
try short.json
