# Half of the training pipelined on two devices, with stale weights; another schedule and a number
# of iterations; as JSON; what cannot be.
stageline hybrid resnet56-cpu --pipelined-fraction 0.5 --partition ppv:19
stageline hybrid uniform:layers=6 --schedule pipedream:replicas=2-1 --devices 3 --pipelined-iterations 3 --iterations 10 --quiet
stageline hybrid uniform:layers=2 --iterations 1000 --json - | head -33
stageline hybrid --help | grep -E '^ +--(schedule|devices) '
stageline hybrid uniform:layers=2 --svg - | head -1
stageline hybrid uniform:layers=2 --schedule 1f1b
stageline hybrid uniform:layers=2 --pipelined-fraction 1.5
stageline hybrid uniform:layers=2 --pipelined-iterations -1
stageline hybrid uniform:layers=2 --pipelined-iterations 70000
stageline hybrid uniform:layers=2 --pipelined-iterations 7 --pipelined-fraction 0.5
stageline hybrid uniform:layers=2 --microbatches 8
stageline hybrid uniform:layers=2,forward=100s --iterations 1000000000
stageline hybrid uniform:layers=2 --program deadlock.slp
