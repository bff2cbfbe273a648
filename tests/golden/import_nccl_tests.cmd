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
# Two runs of the same collective and ranks are one law.
try import nccl-tests all_gather_2x8.log all_gather_2x8.log --out twice.json
cat twice.json
