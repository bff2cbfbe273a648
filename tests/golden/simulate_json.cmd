stageline simulate uniform:layers=2 --schedule gpipe --devices 2 --microbatches 2 --link 1GB/s,5us --memory 16GB --timeline --json -
