# Recomputation and offloading, asked of any schedule, stage by stage.
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
trace=uniform:layers=8,forward=2ms,input_grad=2ms,weight_grad=2ms,output=1MB,stash=5MB
for how in none every:1 full; do
  try compare $trace --schedule 1f1b,zb_h1,dualpipe,pipedream --devices 4 --microbatches 8 --recompute $how --quiet
done
try simulate $trace --schedule zb_h1 --devices 4 --microbatches 8 --recompute full@0-1,every:1@2 --link 2GB/s,50us --quiet
for start in early late; do
  try draw $trace --schedule 1f1b --devices 4 --microbatches 6 --recompute full --recompute-start $start
done
try program $trace --schedule zb_h1 --devices 2 --microbatches 3 --recompute full@0 --recompute-start late
try program $trace --schedule 1f1b --devices 4 --microbatches 4 --offload @0-1 --host-link 16GB/s --compute-only
try compare $trace --schedule 1f1b,zb_h1,gpipe --devices 4 --microbatches 8 --offload all --prefetch 3 --host-link 16GB/s --quiet
try compare $trace --schedule zb_h1,dualpipe --devices 4 --microbatches 8 --memory 35MB --quiet
try simulate $trace --recompute ful
try simulate $trace --recompute every:0
try simulate $trace --recompute full@2-7
try simulate $trace --recompute full@3-1
try simulate $trace --recompute full@all
try simulate $trace --recompute selective
try simulate $trace --recompute modules:moe_act
try simulate model:llama3-8b@h100 --recompute modules:moe_act+mlp
try simulate $trace --recompute modules:moe+moe_act
try simulate $trace --recompute block:0
try compare $trace --schedule 1f1b,zb_h1 --devices 2 --microbatches 4 --recompute none --recompute block:2 --recompute full --quiet
try compare model:deepseek-v2@h100,layers=4,mtp=1 --schedule 1f1b --devices 2 --microbatches 4 --partition 'Et*2|t*2mL' --recompute selective --recompute modules:mla_up_proj+moe_act --quiet
try simulate $trace --recompute full --recompute-start soon
try simulate $trace --recompute full --offload @1 --host-link 16GB/s --quiet
try compare $trace --schedule stale_weights,layerpipe,pipefb --devices 3 --microbatches 8 --recompute full --quiet
try program $trace --schedule stale_weights --devices 3 --microbatches 3 --recompute full --recompute-start late
try simulate $trace --schedule layerpipe --devices 3 --offload all --host-link 16GB/s --quiet
try compare $trace --schedule 1f1b,zb_h1 --devices 2 --microbatches 4 --recompute layers:1-2,full@layers:5- --quiet
try simulate $trace --schedule gpipe:recompute=except_last --offload all --host-link 16GB/s --quiet
try simulate $trace --recompute full@layers:6-9
try simulate $trace --recompute layers:3-1
try simulate $trace --offload half
try simulate $trace --offload @4
try simulate $trace --prefetch 2
# Nothing waits long enough to be copied.
stageline simulate $trace --devices 2 --offload all --host-link 16GB/s | grep '^note: .*offload'
# A host that is too small is no device that is.
try simulate $trace --devices 4 --microbatches 8 --offload all --host-link 16GB/s --host-memory 1kB --memory 1GB --quiet
# The first blocks of a stage leave while its others run: 5 MB beside 2 ms, over a wide link and a narrow one.
for link in 16GB/s 1GB/s; do
  stageline simulate $trace --devices 2 --offload block:2 --host-link $link --quiet | head -3
  stageline simulate $trace --devices 2 --offload block:2 --host-link $link | grep '^note: .*activations'
done
# With degrees over the links of the ranks, in compare too.
ranks="model:llama3-8b@h100,layers=4,seq=1024 --cluster h100x8 --devices 2 --dp 2 --pp 1 --offload block:2"
stageline simulate $ranks | grep '^note: .*activations'
stageline compare $ranks --schedule 1f1b,gpipe | grep '^note: .*activations'
try simulate $trace --devices 2 --offload block:4
try simulate $trace --devices 2 --offload block:2 --recompute full
try simulate $trace --devices 2 --offload block:0
