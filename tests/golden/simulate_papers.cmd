# Stale weights, LayerPipe and PipeFB in full, on equal layers; a host that is nearly full.
stageline simulate uniform:layers=6,forward=1ms,input_grad=1ms,weight_grad=1ms --schedule stale_weights --devices 3 --microbatches 6 --link 10GB/s,10us
stageline simulate uniform:layers=3,forward=3ms,input_grad=3ms,weight_grad=3ms --schedule layerpipe --devices 3 --microbatches 6 --link 10GB/s,10us --quiet
stageline simulate uniform:layers=6,forward=1ms,input_grad=1ms,weight_grad=1ms --schedule pipefb --devices 3 --microbatches 6 --host-link 1GB/s --host-memory 7MB
stageline bound uniform:layers=6,forward=1ms,input_grad=1ms,weight_grad=1ms --schedule pipefb --devices 3 --host-link 1GB/s --host-memory 7MB
stageline simulate uniform:layers=6 --schedule pipefb --devices 3 --host-link 1GB/s --host-memory 3MB
stageline bound uniform:layers=6 --schedule pipedream:transfer=blocking --devices 3 --host-link 1GB/s --quiet
stageline program uniform:layers=3 --schedule layerpipe --devices 3 --microbatches 2
