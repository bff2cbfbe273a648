# Tensor, data and pipeline parallelism on machines of eight: one pipeline represents its replicas.
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
gpt=model:gpt@h100,layers=16,hidden=4096,heads=32,vocab=51200,seq=2048,batch=1
try simulate $gpt --cluster 'h100x8*4' --tp 8 --dp 2 --microbatches 8 --zero 1 --precision bf16
try compare $gpt --cluster 'h100x8*4' --tp 8 --dp 2 --microbatches 8 --precision bf16 --schedule 1f1b,gpipe,zb_h1
try program $gpt --cluster 'h100x8*4' --tp 8 --dp 2 --microbatches 2 --zero 1 --quiet
try simulate $gpt --cluster 'h100x8*4' --tp 3
try simulate $gpt --cluster 'h100x8*4' --tp 8 --dp 3 --pp 2
try simulate $gpt --cluster 'h100x8*4' --tp 8 --devices 24 --pp 2
try simulate $gpt --cluster 'h100x8*4' --tp 8 --pp 2
try simulate $gpt --cluster 'h100x8*4' --tp 2,4
try simulate $gpt --cluster 'h100x8*4' --tp 8 --dp 4 --ep 3
try simulate $gpt --cluster 'h100x8*4' --tp 8 --order tp-dp-pp
try simulate $gpt --cluster 'h100x8*4' --tp 8 --zero 4
try simulate $gpt --cluster 'h100x8*4' --tp 8 --precision bf15
try simulate $gpt --cluster 'h100x8*4' --tp 8 --collectives rings
try simulate $gpt --cluster 'h100x8*4' --tp 8 --collectives tp=pat
try simulate $gpt --cluster 'h100x8*4' --tp 8 --collectives tp=ring,dp
try simulate $gpt --cluster 'h100x8*4' --tp 8 --sharing fare
try simulate $gpt --cluster 'h100x8*4' --tp 8 --buckets ddq
try simulate resnet50-h100 --cluster h100x8 --tp 2 --pp 4
try simulate $gpt --cluster h100x8 --devices 64
# Experts, whose tensor degree is that of the rest or their own.
moe=model:transformer@h100,layers=8,hidden=2048,heads=16,seq=2048,experts=8,topk=2,batch=1
try simulate $moe --cluster h100x8 --tp 2 --dp 4 --ep 4 --sequence-parallel --microbatches 8 --precision bf16
try simulate $moe --cluster h100x8 --tp 2 --dp 4 --ep 8 --etp 1 --sequence-parallel --microbatches 8 --precision bf16
try simulate $moe --cluster h100x8 --tp 2 --dp 4 --ep 8 --sequence-parallel
try simulate $moe --cluster h100x8 --tp 2 --dp 4 --ep 8 --etp 1
try simulate $gpt --cluster h100x8 --tp 2 --etp 1 --sequence-parallel
# What has no effect is said, also where it is written wrong.
try simulate uniform:layers=4 --devices 2 --buckets 25MB
notes() {
  echo "\$ stageline $*"
  COLUMNS=0 stageline "$@" | grep '^note: \(.*no effect\|--precision\|optimizer\|.*recompute full\|.*what if\)'
}
notes simulate uniform:layers=4 --devices 2 --collectives ring
notes simulate model:llama3.2-1b@h100 --devices 4 --order cp-tp-ep-dp-pp --zero 2 --all-pipelines --sequence-parallel
notes simulate model:llama3.2-1b@h100 --devices 4 --dp 2 --order cp-tp-ep-dp-pp --zero 2 --all-pipelines
notes simulate model:llama3.2-1b@h100 --devices 4 --pp 4 --buckets ddp
notes simulate model:llama3.2-1b@h100 --cluster h100x8 --dp 2 --zero 1 --zero-every step
notes simulate model:llama3.2-1b@h100 --cluster h100x8 --dp 2 --shard-group 2 --zero-every step
notes simulate $moe --devices 4 --tp 2 --dp 2 --ep 2 --etp 2
notes plan model:gpt2@h100 --samples 8 --devices 2 --schedule 1f1b --collectives ring --order cp-tp-ep-dp-pp
notes simulate model:llama3.2-1b@h100 --cluster h100x8 --devices 2 --precision fp32
notes simulate model:llama3.2-1b@h100 --cluster h100x8 --devices 2 --recompute full --slow 'gpu1:1.5'
# Once a step beside a pipeline, in every micro-batch without one or where it is asked for.
zero() {
  echo "\$ stageline $*"
  COLUMNS=0 stageline "$@" | grep '^1f1b:\|^note: ZeRO'
}
llama="simulate model:llama3-8b@h100 --cluster h100x8*4 --tp 2 --precision bf16 --schedule 1f1b --microbatches 8"
zero $llama --pp 4 --dp 4 --zero 1
zero $llama --pp 4 --dp 4 --zero 2
zero $llama --pp 4 --dp 4 --zero 3
zero $llama --pp 4 --dp 4 --zero 3 --zero-every microbatch
zero $llama --pp 1 --dp 16 --zero 3
zero $llama --pp 1 --dp 16 --zero 3 --zero-every step
zero $llama --pp 1 --dp 16 --zero 3 --shard-group machine
zero $llama --pp 1 --dp 16 --zero 3 --shard-group 4
try $llama --pp 1 --dp 16 --zero 3 --shard-group 6
try $llama --pp 1 --dp 16 --zero 3 --shard-group rack
try simulate uniform:layers=4 --devices 4 --dp 4 --pp 1 --zero 3 --shard-group machine
try simulate uniform:layers=4 --devices 4 --dp 4 --pp 1 --zero 3 --shard-group domain
try simulate model:mixtral-8x7b@h100 --cluster h100x8*2 --dp 16 --ep 8 --pp 1 --zero 1 --shard-group 4 --precision bf16
try simulate model:llama3-8b@h100 --cluster h100x8*4 --devices 8 --dp 4 --pp 2 --schedule seq1f1b --zero 3 --zero-every microbatch
