stageline draw uniform:layers=2 --schedule gpipe --devices 2 --microbatches 2 --link 1GB/s,5us --svg -
