# Files of other tools, read for what they say: pairs, clocks, paces, quoted cells, empty stages.
cp ../traces/kineto/dualpipe_v/rank*.json.gz "$OUT"
cp ../traces/kineto/rank0.json.gz "$OUT/other.json.gz"
cd "$OUT"
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
# A backward of stage 0 runs in overlapped pairs only, or as I and W.
try import kineto rank0.json.gz rank1.json.gz --out mine.json --program mine.slp
grep -A 3 '"stage0"' mine.json
try simulate mine.json --program mine.slp --quiet | head -n 3

# Two runs, and one whose clock is an hour fast on another host.
gzip -dc rank1.json.gz > rank1.json
sed 's/"baseTimeNanoseconds": 1790857026000000000/"baseTimeNanoseconds": 1790857079070000000/' \
  rank1.json > later.json
try import kineto rank0.json.gz later.json
sed 's/"host_name": "host"/"host_name": "elsewhere"/' later.json > elsewhere.json
try import kineto rank0.json.gz elsewhere.json --out - | grep -o '"the clocks disagree.*"'
try import kineto other.json.gz rank1.json
sed 's/"world_size": 2/"world_size": 4/' rank1.json > larger.json
try import kineto rank0.json.gz larger.json

# A program of one step has the pace of the schedule that it came from.
model=uniform:layers=4,forward=1ms,input_grad=1ms,weight_grad=1ms
stageline program $model --schedule zb_h2 --devices 4 --microbatches 8 --format pytorch --out a.csv
stageline program $model --schedule zb_h2 --devices 4 --microbatches 8 --out a.slp
stageline simulate $model --schedule zb_h2 --devices 4 --microbatches 8 --quiet | head -n 2
stageline simulate $model --program a.slp --quiet | head -n 2
stageline simulate $model --program a.csv --quiet | head -n 2
stageline simulate $model --program a.csv | grep 'one step'

# A byte order mark, cells in quotes, and both.
{ printf '\357\273\277'; sed 's/\([^,]*\)/"\1"/g' a.csv; } > quoted.csv
head -c 30 quoted.csv | od -c | head -n 2
try simulate $model --program quoted.csv --quiet | head -n 2
printf '\377\376a' > wide.csv
try simulate $model --program wide.csv

# A stage without a layer passes on what it gets.
gpt=model:gpt@a100,layers=2
try simulate $gpt --devices 3 --microbatches 6 --link 12GB/s,5us --partition 'Et||tL'
try simulate $gpt --devices 2 --microbatches 6 --link 12GB/s,5us --partition 'Et|tL' --quiet | head -n 2
try program $gpt --devices 3 --partition 'Et||tL' --format megatron
try simulate $gpt --devices 3 --partition 'Et|tL|'
