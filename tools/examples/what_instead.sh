# What should be done instead of four stages? Only the images of an update are kept; the rest is searched.
stageline plan resnet50-cpu --devices 4 --samples 64 --memory 2GB --schedule 1f1b,zb_h1 --top 3 --quiet | grep -v 'best found'
