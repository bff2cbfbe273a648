# Where does a step go? From the ideal step to the real one, cause by cause.
stageline simulate resnet50-cpu --schedule 1f1b --devices 4 --link 2.5GB/s,50us --why --quiet | sed -n '/^cause/,/^→/p'
