stageline compare model:resnet50@h100,batch=32 --schedule all --devices 8 --microbatches 64
