# Runs of other frameworks as questions, plans as their flags, and logs of trainings.
cp ../launch/runs/* ../traces/logs/*.txt ../traces/logs/trainer_state.json "$OUT"
cd "$OUT"
try() {
  echo "\$ stageline $*"
  stageline "$@" 2>&1
  echo "→ exit $?"
}
try import megatron megatron.sh
eval "$(stageline import megatron megatron.sh --quiet) --quiet" | head -n 1
try import megatron megatron.sh --set TP=8 --device a100 --out run.json
cat run.json
try import megatron torchtitan.toml
try import torchtitan torchtitan.toml
try import torchtitan torchtitan.toml --devices 64
try import deepspeed deepspeed.json --model llama3-8b
try import nemo nemo.yaml
try import megatron-bridge megatron_bridge.yaml --devices 16 --quiet
try plan model:gpt2@h100 --samples 32 --devices 4 --microbatch-size 4 --emit megatron --quiet
try plan model:gpt2@h100 --samples 32 --devices 4 --runs-in megatron --schedule zb_v
for log in megatron torchtitan nemo; do try import log $log.txt; done
try import log deepspeed.txt
try import log deepspeed.txt --samples 64 --sequence 2048
try import log trainer_state.json --json -
try simulate model:gpt2@h100 --gbs 8
try simulate model:gpt2@h100 --tensor-model-parallel-size 8
