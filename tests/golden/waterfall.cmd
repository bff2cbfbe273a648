# Where every second of a step comes from: fill and drain alone, a slow device, messages and the
# optimizer of a priced model, data-parallel ranks with collectives; the same as JSON.
stageline simulate uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms --schedule 1f1b --devices 4 --microbatches 8 --why --quiet | sed -n 4,12p
stageline simulate uniform:layers=4 --schedule pipedream --devices 4 --slow gpu2:1.5 --why --quiet | sed -n 4,14p
stageline simulate resnet50-h100 --cluster h100x8 --schedule 1f1b --microbatches 32 --why --quiet | sed -n 4,16p
stageline simulate uniform:layers=8 --schedule 1f1b:recompute=always --devices 4 --microbatches 8 --why --json - | grep -A 64 '"waterfall"'
