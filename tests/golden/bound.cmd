# What decides the pace: a device, a reduction, a message and its answer; a flushed step.
stageline bound uniform:layers=4 --schedule pipedream --devices 4
stageline bound uniform:layers=4 --schedule pipedream:replicas=2-1-1 --devices 4
stageline bound resnet50-h100 --cluster h100x8 --schedule pipedream --microbatches 64
stageline bound resnet50-h100 --cluster h100x8 --schedule 1f1b --microbatches 64
stageline bound uniform:layers=4 --devices 2..4
stageline bound uniform:layers=4 --program deadlock.slp
