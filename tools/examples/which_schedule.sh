# Which schedule is the fastest for ResNet-50 on four devices, and what does it cost in memory?
stageline compare resnet50-cpu --devices 4 --link 2.5GB/s,50us --schedule gpipe,1f1b,interleaved_1f1b,zb_h1 \
  --columns schedule,step,bubble,'peak memory' --quiet
