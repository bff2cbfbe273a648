# A measured run by what launched it and by its log; what contradicts, and what says too little.
cp ../launch/runs/* ../traces/logs/torchtitan.txt "$OUT"
cd "$OUT"
try() {
  echo "\$ stageline $*"
  stageline "$@" 2>&1
  echo "→ exit $?"
}
try explain --log megatron.log
try explain --log torchtitan.log --quiet | head -n 4
try explain --log deepspeed.log --model llama3-8b --kind a100 --quiet | head -n 4
try explain --launch megatron.sh --measured 3s --quiet | head -n 4
try explain --launch deepspeed.json --model llama3-8b --devices 16 --measured '12samples/s' --quiet | head -n 4
try explain --launch megatron.sh --log megatron.log --quiet
try explain --log megatron.log --measured 3s
try explain --log megatron.log --tp 8
try explain --log megatron.log --schedule gpipe
try explain --log torchtitan.log --devices 16
try explain --log torchtitan.txt
try explain --launch torchtitan.log --measured 3s
try explain --launch megatron.sh
try explain --measured 3s
try explain model:gpt2@h100 --launch megatron.sh --measured 3s
try explain model:gpt2@h100 --kind a100 --measured 3s
try explain model:gpt2@h100 --devices 4 --log megatron.log
grep -v 'iteration  *[234]/' megatron.log > single.log
try explain --log single.log
cat megatron.log megatron.log > restarted.log
try explain --log restarted.log
