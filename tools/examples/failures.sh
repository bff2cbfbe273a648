# A machine fails every eight hours: the best interval of checkpoints, and how long 30 days of steps take.
stageline whatif resnet50-cpu --schedule 1f1b --devices 4 --mtbf 8h --checkpoint 60s --run 30d --quiet | grep '^→'
