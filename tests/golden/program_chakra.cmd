# Chakra execution traces: one a device, and where stages have replicas who reduces with whom.
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
cd "$OUT"
try program uniform:layers=3 --devices 3 --microbatches 2 --format chakra --out straight
try program uniform:layers=3 --devices 4 --schedule pipedream:replicas=3-1 --format chakra --out mixed
ls
cat mixed.groups.json
grep -a -c -o 'SEND_F' straight.0.et straight.1.et
# Read back: named by any of its files. SimAI's workload is a text, and a trace when it is read.
try program straight.1.et
try simulate uniform:layers=3 --program straight.0.et --devices 3
cp straight.0.et alone.et
try program alone.et
try program uniform:layers=3 --devices 3 --format simai --out workload.txt
cat workload.txt
try simulate workload.txt --devices 3 --microbatches 2
try program uniform:layers=3 --devices 3 --format chakra
try program uniform:layers=3 --devices 3 --format chakra --out no_such_folder/a
try program uniform:layers=3 --devices 3 --schedule stale_weights --format chakra --out stale
# Messages have sizes; a trace that does not say bytes has none to give.
cat > unknown.json <<'JSON'
{"format": "stageline-trace 1", "name": "timed", "provenance": {"origin": "measured"}, "layers": [
  {"name": "a", "kind": "stage", "forward_us": 1, "input_grad_us": 1, "weight_grad_us": 1},
  {"name": "b", "kind": "stage", "forward_us": 1, "input_grad_us": 1, "weight_grad_us": 1}]}
JSON
try program unknown.json --devices 2 --schedule gpipe --format chakra --out unknown
stageline program uniform:layers=4 --schedule 1f1b --devices 4 --dp 2 --microbatches 4 --link 1GB/s --format chakra --out $OUT/dp
