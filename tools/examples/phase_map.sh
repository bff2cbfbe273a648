# Which schedule is the fastest where, over micro-batches and the bandwidth of the links.
stageline phase resnet50-h100 --devices 4 --x microbatches=4..64:log5 --y link=1GB/s..400GB/s:log5 \
  --schedule gpipe,1f1b,zb_h1 --quiet
