# What to do, beyond the fastest row: less memory at nearly the same speed, one device, a way to fit.
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
equal="uniform:layers=8,batch=4"
try compare $equal --schedule zb_h2,list,zb_auto --devices 4 --microbatches 32 --quiet
try compare $equal --schedule zb_h2,list,zb_auto --devices 4 --microbatches 32 --quiet --within 10%
try compare lenet5-cpu --devices 4 --link 100MB/s,1ms --schedule 1f1b,gpipe,pipedream
try compare lenet5-cpu --devices 2..4 --link 100MB/s,1ms --schedule 1f1b --memory 1MB --quiet
try compare $equal --schedule 1f1b,gpipe --devices 4 --microbatches 8 --memory 20MB
try compare $equal --schedule 1f1b,gpipe --devices 4 --microbatches 8 --memory 1MB --quiet
try compare $equal --schedule gpipe,gpipe:recompute=always,1f1b --devices 4 --microbatches 8
try simulate $equal --schedule gpipe:recompute=always --devices 4 --microbatches 8 | head -5
try compare $equal --schedule 1f1b,Schedule1F1B,Interleaved1F1B,ZB-H1,zb2p --devices 4
try simulate $equal --schedule ZBV --devices 2 | grep note
try compare $equal --schedule 1f1b,gpipe,pipedream,zb_h1,interleaved_1f1b,pipefb --devices 10 --quiet
try compare $equal --schedule 1f1b --devices 2..4 | sed -n 3p
printf '{"schemaVersion": 1, "traceEvents": []}' | gzip > "$OUT/rank0.json.gz"
try simulate "$OUT/rank0.json.gz"
stageline simulate $equal --devices 2 --json "$OUT/outcome.json" --timeline > "$OUT/said"
try simulate "$OUT/outcome.json"
