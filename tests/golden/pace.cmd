# An asynchronous program as text: too short to show its pace, then long enough, beside the schedule.
stageline program alexnet-cpu --schedule layerpipe --devices 3 --microbatches 2 --steps 2 --out $OUT/q.slp
stageline simulate alexnet-cpu --program $OUT/q.slp --partition 0,1-2,3-5,6-10 | grep 'layerpipe: '
stageline program alexnet-cpu --schedule layerpipe --devices 3 --microbatches 2 --steps 48 --out $OUT/q.slp
stageline simulate alexnet-cpu --program $OUT/q.slp --partition 0,1-2,3-5,6-10 | grep 'layerpipe: '
stageline simulate alexnet-cpu --schedule layerpipe --devices 3 --microbatches 2 | grep 'layerpipe: '
# One micro-batch a step; a latency of an odd number of picoseconds; delays and windows of some
# stages; a pipeline of one device.
stageline bound alexnet-cpu --schedule zb_v --devices 3 --microbatches 1 --quiet
stageline simulate uniform:layers=2,output=0B --devices 2 --schedule naive --microbatches 1 --link unlimited,5ps --quiet | grep latency
cat > $OUT/d.slp <<'PROGRAM'
stageline-program 1
microbatches: 2
steps: 1
weights: latest
stage 0: gpu0
stage 1: gpu1
delays: - 0
windows: 2 -
gpu0: 0F0 0F1 0B0 0B1
gpu1: 1F0 1B0 1F1 1B1
PROGRAM
stageline simulate uniform:layers=2 --program $OUT/d.slp --quiet | grep 'delays\|windows'
sed 's/delays: - 0/delays: 1 -/' $OUT/d.slp > $OUT/e.slp
stageline diff $OUT/d.slp $OUT/e.slp
stageline hybrid resnet56-cpu --schedule pipedream_2bw --devices 1 --iterations 100 --quiet | head -6
