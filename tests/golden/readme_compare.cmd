# README's example, as printed there.
stageline compare resnet50-h100 --cluster h100x8 --microbatches 64
