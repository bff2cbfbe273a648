# Several stages a device, two directions: what they print, what they refuse.
stageline program uniform:layers=4,forward=1ms --schedule chimera --devices 4 --microbatches 4
stageline program uniform:layers=4,forward=1ms --schedule hanayo --devices 2 --microbatches 2 --link 10GB/s,10us
stageline simulate uniform:layers=8,forward=1ms --schedule interleaved_1f1b --devices 4 --microbatches 8 --link 10GB/s,10us
stageline compare uniform:layers=16,forward=1ms --schedule 1f1b,interleaved_1f1b,1f1b_v,looped_bfs,interleaved_zb,eager_1f1b,dapple:policy=B,gems,chimera,chimera:concat=doubling,hanayo,hanayo:waves=2 --devices 4 --microbatches 8 --memory 100MB
stageline compare uniform:layers=16,forward=1ms --schedule chimera,interleaved_1f1b:group=3,interleaved_1f1b,hanayo:waves=2 --devices 3..5 --microbatches 9
stageline simulate uniform:layers=16 --schedule chimera:concat=halving --devices 4
stageline simulate uniform:layers=16 --schedule interleaved_1f1b:chunks=5 --devices 4
