# The study of staleness from its kept runs; what is refused. The numbers have a test of their own.
gzip -dc ../../tools/executor/studies/staleness.json.gz > "$OUT/staleness.json"
cd "$OUT"
try() {
  echo "\$ stageline staleness $*"
  stageline staleness "$@"
  echo "→ exit $?"
}
try staleness.json --report page | sed -n '/→/p; 1,2p'
ls page
try
try no_such.json
sed 's/"case": "non-pipelined"/"cases": "non-pipelined"/' staleness.json > broken.json
try broken.json
echo '{"format": "stageline-staleness 1", "seeds": 3, "runs": []}' > empty.json
try empty.json
try staleness.json --json - | head -n 8
