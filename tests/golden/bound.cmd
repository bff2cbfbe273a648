# What decides the pace: a device, a reduction, a message and its answer, a link that carries more
# than the devices compute; a flushed step. The same as JSON; what is too large to be added up.
stageline bound uniform:layers=4 --schedule pipedream --devices 4
stageline bound uniform:layers=4 --schedule pipedream:replicas=2-1-1 --devices 4
stageline bound resnet50-h100 --cluster h100x8 --schedule pipedream --microbatches 64
stageline bound uniform:layers=3,output=9MB --devices 3 --link 1GB/s,5us --schedule pipedream
stageline bound resnet50-h100 --cluster h100x8 --schedule 1f1b --microbatches 64 --quiet
stageline bound uniform:layers=2 --schedule pipedream --devices 2 --link 1GB/s,5us --json -
stageline bound uniform:layers=4 --devices 2..4
stageline bound uniform:layers=4 --program deadlock.slp
stageline bound uniform:layers=200,forward=100000s
stageline compare uniform:layers=8,weights=4000000TB
stageline bound uniform:layers=8 --schedule cyclic --devices 4 --microbatches 32 --quiet
stageline bound uniform:layers=8 --schedule cyclic:limit=3 --devices 4 --microbatches 32 --quiet
stageline bound uniform:layers=4 --schedule cyclic:limit=1 --devices 2 --microbatches 3 --json -
stageline simulate uniform:layers=4 --schedule cyclic:limit=1,placement=v --devices 2
stageline simulate uniform:layers=4 --schedule cyclic:limit=0 --devices 2
# With degrees: one pipeline that stands for all replicas.
stageline bound uniform:layers=8,weights=4MB --devices 8 --dp 2 --link 1GB/s,5us --microbatches 8
stageline bound model:gpt2@h100 --cluster h100x8 --tp 2 --pp 4 --microbatches 8 --json - | grep -A3 '"degrees"'
stageline bound uniform:layers=8,weights=4MB --devices 8 --dp 2 --link 1GB/s,5us --all-pipelines
stageline bound uniform:layers=8,weights=4MB --devices 8 --dp 2 --link 1GB/s,5us --sharing fair --quiet
