# Unequal devices and links: what if one is slower, the order searched, refusals.
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
cat > "$OUT/mixed.json" <<'END'
{
  "format": "stageline-cluster 1",
  "name": "mixed",
  "devices": [{"name": "old", "count": 2, "rate": 0.5, "memory": "40MB"}, {"name": "new", "count": 2, "memory": "60MB"}],
  "switches": ["switch"],
  "links": [{"from": "old*", "to": "switch", "bandwidth": "1GB/s", "latency": "1us"},
            {"from": "new*", "to": "switch", "bandwidth": "4GB/s", "latency": "1us"}]
}
END
layers=uniform:layers=12,forward=1ms,input_grad=1ms,weight_grad=1ms
try simulate $layers --schedule 1f1b --devices 3 --microbatches 6 --slow gpu1:2
try simulate $layers --schedule 1f1b --devices 3 --microbatches 6 --slow gpu1:2 --device-order search
try simulate $layers --cluster "$OUT/mixed.json" --schedule 1f1b --microbatches 8 --device-order search
try simulate $layers --schedule 1f1b --devices 3 --slow gpu5:2
try simulate $layers --schedule 1f1b --devices 3 --slow gpu1
try simulate $layers --schedule 1f1b --devices 3 --device-order best
# One device is the fastest of them, in the sentence and in its figure.
stageline compare model:resnet18@rtx4090,batch=8 --schedule zb_h1,1f1b --link 2.5GB/s,50us --slow gpu0:2 --devices 2 --microbatches 4 --quiet | grep 'one device'
# Rows with and without the fastest device: held against that one device, and said.
cat > $OUT/unlike.json <<'END'
{"format": "stageline-cluster 1", "name": "unlike",
 "devices": [{"name": "a"}, {"name": "b"}, {"name": "c", "rate": 8}], "switches": ["switch"],
 "links": [{"from": "*", "to": "switch", "bandwidth": "1GB/s", "latency": "1us"}]}
END
stageline compare uniform:layers=8,output=5MB --cluster $OUT/unlike.json --devices 2..3 --schedule 1f1b --microbatches 4 | grep -E '^→|^1f1b|speed-up of a row'
stageline compare uniform:layers=8,output=10MB --cluster $OUT/unlike.json --devices 2..3 --schedule 1f1b --microbatches 4 --quiet | grep -E '^→|^1f1b'
