# Groups and replicas that lie unevenly on machines: tensor groups of which some have two and two ranks on
# two machines and others one and three; and replicas that share NICs with more or fewer others.
step() {
  echo "\$ stageline $*"
  stageline "$@" > "$OUT/said"; code=$?
  grep -E '^[a-z0-9_]+: step|replicas' "$OUT/said"
  echo "→ exit $code"
}
groups="--cluster h100x8*3 --tp 4 --dp 3 --pp 2 --sequence-parallel --order cp-ep-dp-tp-pp --no-changes"
step simulate model:gpt2@h100 $groups
step simulate model:gpt2@h100 $groups --schedule chimera --microbatches 4
nics="--cluster p4d*5 --devices 36 --dp 9 --pp 4 --schedule naive --no-changes"
step simulate model:gpt2@a100,batch=8 $nics
step simulate model:gpt2@a100,batch=8 $nics --all-pipelines
