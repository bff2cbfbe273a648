# A comparison under uncertainty: p95 and the share of scenarios in which a schedule is the best, the
# ranking by another quantile, as JSON; and what is refused.
stageline compare uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms --schedule gpipe,1f1b,zb_h1,zb_v,pipedream,layerpipe --devices 4 --microbatches 8 --jitter 10%
stageline compare uniform:layers=8 --schedule gpipe,1f1b,zb_h1 --devices 4 --microbatches 8 --sometimes-slow gpu2:1.5@0.3 --by p50 --scenarios 500 --seed 7 --jobs 1 --quiet
stageline compare uniform:layers=8 --schedule gpipe,1f1b,zb_h1 --devices 4 --microbatches 8 --sometimes-slow gpu2:1.5@0.3 --by p50 --scenarios 500 --seed 7 --jobs 3 --quiet | tail -n 1
stageline compare uniform:layers=8 --schedule gpipe,1f1b --devices 4 --microbatches 8 --jitter 5% --columns p95,best --by mean --quiet
stageline compare uniform:layers=8 --schedule 1f1b --devices 2..3 --microbatches 8 --jitter 5% --quiet | head -n 6
stageline compare uniform:layers=8 --schedule 1f1b,zb_h1 --devices 2 --link 1GB/s,5us --microbatches 8 --jitter 5% --freeze --scenarios 100 --json - | grep -A 40 '"uncertainty"' | head -n 44
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
try compare uniform:layers=8 --by p95
try compare uniform:layers=8 --by speed
try compare uniform:layers=8 --scenarios 100
try compare uniform:layers=8 --jitter 5% --scenarios 0
try compare uniform:layers=8 --jitter 5% --scenarios 1000000000
try compare uniform:layers=8 --jitter -5%
try compare uniform:layers=8 --sometimes-slow gpu0:1.2@1.5
try compare uniform:layers=8 --schedule 1f1b,gpipe --sometimes-slow gpu9:1.2@0.5
try compare uniform:layers=8 --jitter 5% --by p101
try compare uniform:layers=8 --jitter 5% --within 10%
try compare uniform:layers=8 --by energy --within 10%
try whatif uniform:layers=200 --devices 128 --microbatches 2 --pause 1:100000s --scenarios 16
stageline whatif uniform:layers=4,forward=0s,input_grad=0s,weight_grad=0s --devices 4 --jitter 5% --scenarios 16 --quiet | tail -n 1
stageline whatif --help | grep -E '^ +--(schedule|devices) '
# What does not fit wins nothing.
Q="resnet50-cpu --devices 4 --microbatches 8 --memory 1.3GB --jitter 5% --scenarios 64 --quiet"
stageline whatif $Q --schedule zb_h1,1f1b
stageline whatif $Q --schedule zb_h1 --by p50 | tail -n 1
stageline whatif $Q --schedule zb_h1,1f1b --svg - | grep -o '[a-z0-9_]*: [^<]* at p95'
stageline whatif $Q --schedule zb_h1,zb_h2 --json - | grep -E '"schedule"|"fits"|"best"'
stageline whatif $Q --schedule zb_h1 > $OUT/none; echo "exit $?"
# Data-parallel replicas draw their own times.
stageline whatif 'model:gpt@h100,layers=8,hidden=1024,heads=16,vocab=51200,seq=1024,batch=1' --cluster 'h100x8*2' --tp 2 --dp 4 --microbatches 4 --jitter 20% --scenarios 64 | grep -E '^1f1b|replicas|critical'
# Each GPU of a rank draws its own, and the ops wait for the slowest: of eight with 5 %, 7.3 %. A slow
# device makes compute longer and not the collectives inside it, as --slow does; slow links make those
# longer. Of two slow devices of a rank one decides.
G='model:gpt@h100,layers=4,hidden=4096,heads=32,vocab=51200,seq=2048,batch=1 --cluster h100x8 --microbatches 8 --scenarios 64 --quiet'
stageline whatif $G --tp 8 --jitter 5% --by mean | tail -n 1
stageline whatif $G --tp 4 --pp 2 --partition 0-4,5- --sometimes-slow gpu7:1.5@1 | tail -n 1
stageline whatif $G --tp 4 --pp 2 --partition 0-4,5- --sometimes-slow gpu7:1.5@1,gpu6:1.2@0.5 | tail -n 1
stageline whatif $G --tp 4 --pp 2 --partition 0-4,5- --sometimes-slow links:2@1 | tail -n 1
stageline whatif $G --dp 4 --pp 2 --zero 3 --partition 0-4,5- --sometimes-slow links:2@1 | tail -n 1
# Steps that alternate: the pace of both.
Q='uniform:layers=8,forward=1ms --devices 4 --microbatches 5 --schedule chimera --slow gpu1:1.3 --quiet'
stageline simulate $Q | head -n 1
stageline whatif $Q --pause 1000000:1ps --scenarios 16 | tail -n 1
# The picture says where a step is without variation, in the median and at p95, and names curves above.
stageline whatif uniform:layers=4 --devices 2 --microbatches 4 --schedule 1f1b,gpipe --jitter 5% --scenarios 100 --svg - | grep -oE '>(nominal|p50|p95|1f1b|gpipe)<' | sort | uniq -c
