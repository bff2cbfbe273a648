# README's example, as printed there.
stageline compare resnet50-cpu --devices 4 --link 2.5GB/s,50us --memory 8GB --microbatches 32
