# Latencies and bandwidths of collectives from what nccl-tests printed.
cp ../traces/nccl/*.log "$OUT"
cd "$OUT"
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
try import nccl-tests all_reduce_a100x8.log all_gather_2x8.log --out mine.json
cat mine.json
try import nccl-tests all_gather_2x8.log
head -n 22 all_reduce_a100x8.log > cut.log
try import nccl-tests cut.log
head -c 1650 all_reduce_a100x8.log > row.log
try import nccl-tests row.log
sed 's/202.60      0/202.60     12/' all_reduce_a100x8.log > wrong.log
try import nccl-tests wrong.log
grep -v 'Collective test' all_reduce_a100x8.log > nameless.log
try import nccl-tests nameless.log
try import nccl-tests nameless.log --kind all_gather
try import nccl-tests nameless.log --kind reduce
try import nccl-tests nameless.log --kind all_reduce --out mine.json --quiet
sed -e '/^ *[0-9]/{/^ *1048576 /!d;}' all_reduce_a100x8.log > one.log
try import nccl-tests one.log
try import nccl-tests mine.json
try import nccl-tests
# Labels of launchers, a run of no collective, the file of -J.
sed 's/^/ 0: /' all_reduce_a100x8.log > labels.log
sed 's/all_reduce_perf/gather_perf/' all_reduce_a100x8.log > gather.log
cat labels.log gather.log > suite.log
try import nccl-tests suite.log --out suite.json
try import nccl-tests gather.log
cat > sendrecv.log <<'EOF'
# Collective test starting: sendrecv_perf
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 67108864 step: 8(factor) warmup iters: 5 iters: 20 agg iters: 1
#  Rank  0 Group  0 Pid   1000 on     node-a device  0 [0000:1b:00] NVIDIA H100
#  Rank  1 Group  0 Pid   1001 on     node-b device  0 [0000:1b:00] NVIDIA H100
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
     1048576        131072     float    none      -1    41.00   25.58   25.58      0    41.00   25.58   25.58      0
     8388608       1048576     float    none      -1    210.0   39.95   39.95      0    210.0   39.95   39.95      0
    67108864       8388608     float    none      -1   1550.0   43.30   43.30      0   1550.0   43.30   43.30      0
# Avg bus bandwidth    : 36.2
EOF
try import nccl-tests sendrecv.log
cat > own.json <<'EOF'
{"version": 2, "args": ["all_gather_perf"], "nccl_version": 22703,
 "config": {"nthreads": 1, "ngpus": 4, "devices": [
   {"rank": 0, "hostname": "a", "device_info": "NVIDIA H100"},
   {"rank": 4, "hostname": "b", "device_info": "NVIDIA H100"}]},
 "results": [
   {"size": 1000000, "out_of_place": {"time": 50.0, "alg_bw": 20.0, "bus_bw": 17.5, "nwrong": 0}},
   {"size": 8000000, "out_of_place": {"time": 200.0, "alg_bw": 40.0, "bus_bw": 35.0, "nwrong": 0}}]}
EOF
try import nccl-tests own.json
# Two runs of the same collective and ranks are one law.
try import nccl-tests all_gather_2x8.log all_gather_2x8.log --out twice.json
cat twice.json
