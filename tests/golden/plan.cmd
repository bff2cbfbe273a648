# What to do instead: the front, the recommendation with its command, how far it is from the best; bad input.
small="uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms,weights=1MB,stash=8MB,output=1MB,batch=4"
try() {
  echo "\$ stageline plan $*"
  stageline plan "$@"
  echo "→ exit $?"
}
try "$small" --samples 64 --devices 4 --memory 60MB --schedule 1f1b,zb_h1,gpipe --threads 1
try "$small" --samples 64 --devices 4 --memory 60MB --fix 'schedule=1f1b|zb_h1' --fix partition=balanced --threads 3 --quiet --flags
try "$small" --samples 64 --devices 4 --memory 2MB --schedule 1f1b --quiet
try "$small"
try "$small" --tokens-per-step 1M
try "$small" --samples 0
try "$small" --samples 64 --devices 4 --fix devices=8
try "$small" --samples 64 --fix tp=2 --fix tp=4
try "$small" --samples 64 --fix shedule=1f1b
try "$small" --samples 64 --fix tp
try "$small" --samples 64 --tp 0
try "$small" --samples 64 --devices 4 --pp 8
try "$small" --samples 7 --devices 4 --microbatch-size 4
try "$small" --samples 64 --objective speed
try "$small" --samples 64 --within much
try "$small" --samples 64 --budget soon
try "$small" --samples 64 --microbatches 4
try "$small" --samples 64 --schedule 1f2b
try "$small" --samples 64 --theme dark
try model:gpt2@h100 --cluster h100x8 --tokens-per-step 1000
try model:llama3-8b@h100,layers=8 --cluster h100x8 --samples 8 --precision bf16 --schedule 1f1b --reserve 64GB --quiet
try resnet50-cpu --devices 2 --link 2.5GB/s,50us --samples 16 --schedule 1f1b --tp 1 --cp 1 --dp 1 | grep 'batch sizes'
