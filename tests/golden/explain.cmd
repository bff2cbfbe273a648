# Why a measured run takes as long as it does: a language model, its causes, a plain trace; what cannot be asked.
stageline explain model:llama3-8b@h100 --cluster 'h100x8*2' --tp 8 --dp 2 --sequence-parallel --microbatches 8 --measured 5000tok/s/gpu --quiet
stageline explain model:llama3-8b@h100 --cluster 'h100x8*2' --dp 16 --zero 3 --microbatches 2 --measured 12s --memory-measured 70GB --quiet
stageline explain uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms --devices 4 --microbatches 8 --measured 80ms --json -
stageline explain uniform:layers=8 --devices 4
stageline explain uniform:layers=8 --devices 4 --measured 80
stageline explain uniform:layers=8 --devices 4 --measured 0s
stageline explain uniform:layers=8 --devices 4 --measured 80tok/s
stageline explain model:llama3-8b@h100 --devices 8 --tp 8 --microbatches 8 --measured 5s --measured 400TFLOP/s
stageline explain model:llama3-8b@h100 --devices 8 --tp 8 --microbatches 8 --measured 2000TFLOP/s
