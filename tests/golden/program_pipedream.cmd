stageline program small.graph.txt --partition 0-1,2- --schedule pipedream:replicas=2-1 --devices 3 --microbatches 4 --link 12GB/s
