# Clusters of several machines, memory near the limit, and what is refused.
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
fits() {
  echo "\$ stageline $*"
  stageline "$@" >"$OUT/said"
  echo "→ exit $?"
  grep -E 'peak memory .* GB on|devices of' "$OUT/said"
}
fits simulate model:gpt@h100,batch=8 --cluster 'h100x8*2' --devices 12 --microbatches 16
fits simulate model:gpt@h100,batch=8 --cluster h100x8 --devices 4 --memory 3GB --microbatches 4
fits simulate model:gpt@h100,batch=8 --cluster h100x8 --devices 4 --memory 3GB --reserve 1GB --microbatches 4
fits simulate model:gpt@h100,batch=8 --devices 2 --reserve 2GB --microbatches 4
try simulate uniform:layers=64 --cluster h100x8 --devices 64
try simulate uniform:layers=64 --cluster 'h100x8*4' --devices 64
try simulate uniform:layers=64 --cluster rtx4090x8 --devices 64
try simulate uniform:layers=8 --cluster 'h100x8*0'
try simulate uniform:layers=8 --cluster 'h100x8*many'
try simulate uniform:layers=8 --cluster 'gtx1060x2*4'
try simulate uniform:layers=8 --cluster 'h100x8*9000'
try simulate uniform:layers=8 --cluster 'h100*2'
try simulate uniform:layers=8 --cluster h100x8 --reserve 2
try simulate uniform:layers=8 --cluster h100x8 --reserve 90GB
try simulate uniform:layers=8 --cluster h100x8 --memory 40
lab() {
  cat >"$OUT/lab.json" <<END
{"format": "stageline-cluster 1", "name": "lab", "machines": $1,
 "devices": [{"name": "gpu", "count": 2, "kind": "$2"}], "switches": ["nvswitch"],
 "links": [{"from": "gpu*", "to": "nvswitch", "bandwidth": $3, "tier": "nvlink"}],
 "network": {"nics": [{"name": "nic", "count": 2, "bandwidth": "50GB/s"$4}], "rails": 2$5}}
END
  echo "machines $1, kind $2, bandwidth $3$4$5"
  try simulate uniform:layers=4 --cluster "$OUT/lab.json" --quiet
}
lab 0 h100 '"450GB/s"'
lab 2 h1000 '"450GB/s"'
lab 2 h100 450
lab 2 h100 '"450GB/s"' ', "rail": "rail2"'
lab 2 h100 '"450GB/s"' ', "devices": "gpu2"'
lab 2 h100 '"450GB/s"' '' ', "spine": {"oversubscription": 0.5}'
lab 2 h100 '"450GB/s"'
