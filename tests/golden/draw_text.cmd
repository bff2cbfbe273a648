stageline draw uniform:layers=4,forward=1ms,input_grad=1ms,weight_grad=1ms --schedule 1f1b --devices 4 --microbatches 8 --columns 33
