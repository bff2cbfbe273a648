# What 64 bits cannot add up is refused with its numbers, and no transfer is clipped; what is a
# thousand times slower than in README's example is exactly that.
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
try compare uniform:layers=4,output=1TB --schedule naive,pipedream --devices 4 --link 1B/s --microbatches 64
try compare uniform:layers=4,output=1MB --schedule naive,pipedream --devices 4 --link 1B/s --microbatches 4
try compare uniform:layers=4,output=1kB --schedule naive,pipedream --devices 4 --link 1B/s --microbatches 64
try compare resnet50-cpu --devices 4 --link 2.5kB/s,50us --memory 8GB --microbatches 32 --schedule gpipe,1f1b,pipedream
try simulate uniform:layers=4 --schedule gpipe --devices 4 --link unlimited,100000s --microbatches 64 --quiet
try bound uniform:layers=4,output=1TB --schedule pipedream --devices 4 --link 1kB/s
try hybrid uniform:layers=4,output=1TB --schedule pipedream --devices 4 --link 1kB/s
try draw uniform:layers=4,output=1TB --schedule gpipe --devices 4 --link 1kB/s
try compare uniform:layers=4,weights=4000TB --devices 4 --link 1MB/s --schedule pipedream:replicas=2-1-1
try compare uniform:layers=4,weights=1TB --devices 2 --link 1B/s --schedule pipedream:replicas=2
try compare uniform:layers=8,stash=1TB --schedule pipefb --devices 2 --host-link 1B/s
try compare uniform:layers=8,output=1GB --schedule layerpipe --devices 2 --link 1B/s
try compare uniform:layers=4,forward=1e9s
try compare uniform:layers=4,forward=inf
try compare uniform:layers=4,forward=1e400ms
try compare uniform:layers=4 --link 1e999GB/s
try compare uniform:layers=4 --microbatches 4000000000
try compare uniform:layers=4 --microbatches 60000000
try compare uniform:layers=4 --steps 2000000000
try compare uniform:layers=4 --microbatches 1000000 --steps 1000000
try compare uniform:layers=4 --devices 100000
try compare uniform:layers=4 --microbatch-size 67108864 --schedule 1f1b
try compare uniform:layers=4,output=1000TB,forward=0,input_grad=0,weight_grad=0 --microbatch-size 67108864 --schedule 1f1b
try compare model:gpt@h100,batch=2147483647 --devices 4
# No ratio of nothing, and no throughput without time.
try compare uniform:layers=4,weights=0B,output=0B --devices 4 --schedule gpipe,1f1b
try compare uniform:layers=4,forward=0,input_grad=0,weight_grad=0 --devices 4 --schedule gpipe,pipedream
try simulate uniform:layers=4,forward=0,input_grad=0,weight_grad=0 --devices 4 --quiet
