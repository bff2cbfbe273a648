# Ops vary by 5 %: the distribution of the step, and which schedule is the fastest how often.
stageline whatif resnet50-cpu --schedule 1f1b,zb_h1 --devices 4 --link 2.5GB/s,50us --jitter 5% --quiet
