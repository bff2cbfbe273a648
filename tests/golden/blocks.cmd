# Language models cut by blocks, written as layouts of Megatron.
try() {
  echo "\$ stageline program $*"
  stageline program "$@" --format megatron
  echo "→ exit $?"
}
llama="model:llama3-70b@h100 --cluster h100x8*8 --tp 8 --pp 8 --microbatches 8"
try $llama --partition blocks
try $llama --partition blocks:first=9,last=11
try $llama --partition blocks --schedule interleaved_1f1b
try $llama --partition blocks --schedule interleaved_1f1b:chunks=3
try $llama --partition 'Et*9|(t*10|)*6t*11L'
try model:gpt2@h100 --devices 2 --partition blocks:embedding=1,head=1 --microbatches 4
try model:deepseek-v3@h100 --cluster 'h100x8*16' --tp 1 --ep 8 --dp 8 --pp 16 --microbatches 16 --partition blocks
try model:deepseek-v3@h100 --cluster 'h100x8*16' --tp 1 --ep 8 --dp 8 --pp 16 --microbatches 16 --partition blocks:last=1
try $llama --partition blocks --schedule zb_v
try $llama --partition blocks:first=80,last=1
try $llama --partition blocks:first=9,head=1
try $llama --partition blocks:embeding=1
try resnet50-h100 --cluster h100x8 --partition blocks
try model:llama3-8b@h100 --devices 2 --partition 'Et*16|t*15L'
