stageline simulate model:gpt@a100,layers=6,batch=2 --schedule 1f1b --devices 4 --microbatches 8
