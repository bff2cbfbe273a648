# What would faster ops, devices and links be worth?
stageline sensitivity resnet50-cpu --schedule 1f1b --devices 4 --link 2.5GB/s,50us --quiet | grep -E '^what|^→|^links|^compute'
