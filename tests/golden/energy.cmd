# Joules and dollars: of a schedule, ranked by energy and by cost, with a price of one's own, for
# language models by a billion tokens, as JSON; and what is refused.
stageline simulate resnet50-h100 --cluster h100x8 --schedule 1f1b --microbatches 32 | grep -e '^energy' -e 'note: energy' -e 'note: cost'
stageline compare resnet50-h100 --cluster h100x8 --microbatches 32 --schedule gpipe,1f1b,zb_h1,naive --by energy
stageline compare resnet50-h100 --cluster h100x8 --microbatches 32 --schedule gpipe,1f1b,zb_h1 --by cost --price 2 --quiet
stageline compare resnet50-h100 --cluster h100x8 --devices 4..5 --microbatches 20 --schedule 1f1b,gpipe --by energy --quiet | head -n 9
stageline compare resnet50-cpu --devices 4 --microbatches 8 --schedule gpipe,1f1b --by cost --price 0.05 --columns step,cost --quiet
stageline simulate model:gpt@a100,layers=24,hidden=1024,batch=4 --cluster a100x8 --schedule 1f1b --microbatches 16 --json - | grep -A 9 '"energy_joules"'
stageline simulate model:gpt@a100,layers=24,hidden=1024,batch=4 --cluster a100x8 --schedule 1f1b --microbatches 16 --quiet | grep '^energy'
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
try compare resnet50-cpu --devices 4 --schedule gpipe,1f1b --by energy
try compare uniform:layers=8 --cluster gtx1060x2 --schedule gpipe,1f1b --by cost
try compare uniform:layers=8 --cluster gtx1060x2 --schedule gpipe,1f1b --price -1
