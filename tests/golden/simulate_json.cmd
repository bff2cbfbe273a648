stageline simulate uniform:layers=2 --schedule gpipe --devices 2 --microbatches 2 --link 1GB/s,5us --memory 16GB --timeline --json -
# What the text notes is in JSON.
stageline simulate uniform8 --schedule 1f1b:recompute=always --offload all --devices 4 --json - | sed -n '/"notes"/,/]/p'
