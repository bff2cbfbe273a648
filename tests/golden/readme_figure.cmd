# README's picture is what the command draws. To renew it:
#   stageline draw … --svg tools/report/timeline/example.svg
stageline draw resnet50-h100 --cluster h100x8 --devices 4 --schedule 1f1b --microbatches 8 \
  --svg $OUT/example.svg --quiet
cmp $OUT/example.svg ../../tools/report/timeline/example.svg && echo same
# and so are the bundled traces that the roofline prices
stageline import model:resnet50@h100,batch=32 | cmp - ../../traces/data/resnet50-h100.json && echo same
stageline import model:gpt@h100,batch=8 | cmp - ../../traces/data/gpt2-h100.json && echo same
