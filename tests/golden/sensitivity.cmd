# What the step hangs on: a slow stage in a stream, shared links, a measured trace; the same as JSON;
# what cannot be asked.
stageline sensitivity uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms --schedule 1f1b --devices 4 --microbatches 8
stageline sensitivity uniform:layers=4 --schedule pipedream --devices 4 --slow gpu2:1.5 --quiet --full
stageline sensitivity resnet50-h100 --cluster h100x8 --schedule 1f1b --microbatches 32
stageline sensitivity uniform:layers=2 --schedule gpipe --devices 2 --microbatches 2 --json - | head -45
stageline sensitivity uniform:layers=4 --devices 2 --svg - | head -3
stageline sensitivity uniform:layers=4 --devices 2..4
stageline sensitivity uniform:layers=4,forward=0s,input_grad=0s,weight_grad=0s --devices 2
# All devices are counted, and blocking collectives are a lever beside the links'.
Q="uniform:layers=8,forward=1ms,weights=20MB,output=1MB --devices 4 --dp 2 --pp 2 --zero 3 --schedule 1f1b --link 10GB/s,10us"
stageline sensitivity $Q --json - | grep '"devices"'
stageline sensitivity $Q --svg - | grep -o 'on [0-9]* devices'
stageline sensitivity $Q | grep 'links. bandwidth'
# Where links decide, they come first; what a little less makes longer has no share of the cycle.
stageline sensitivity uniform:layers=4,forward=1ms --devices 4 --schedule 1f1b --link 1MB/s,1ms --quiet | tail -n 1
stageline sensitivity uniform:layers=4,forward=1ms --devices 4 --schedule chimera --link 1GB/s,1ms --quiet | grep -E '→|^forward'
