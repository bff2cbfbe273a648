# Programs and plans in the formats of other tools, and back.
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
cp *.slp "$OUT"
cd "$OUT"
try program uniform:layers=4 --devices 4 --microbatches 4 --format pytorch
try program uniform:layers=2 --devices 2 --microbatches 2 --format pytorch-comms --out mine.csv
cat mine.csv
try program mine.csv
try program --check mine.csv
try draw uniform:layers=2 --program mine.csv --quiet
try program mine.csv --format pytorch
stageline program mine.csv --format pytorch --out - | stageline program --check - --quiet
try program uniform:layers=2 --devices 2 --schedule pipedream --microbatches 3 --format pytorch
try program uniform:layers=4 --devices 4 --schedule pipedream:replicas=3-1 --microbatches 6 --format pipedream
try program uniform:layers=9 --devices 4 --format torchgpipe
try program model:gpt@a100,layers=12 --devices 4 --partition 'Et*2|(t*3|)*2t*4L' --format megatron
echo 'Et|t*5|t*5|t,L' > layout.txt
try program model:gpt@a100,layers=12 --devices 4 --partition layout.txt --format torchgpipe
# A text whose messages are right by their names, but not by their order.
try program uniform:layers=24 --schedule zb_v --devices 2 --microbatches 8 --link 12GB/s,5us --out a.slp
try program --check a.slp --quiet
try program a.slp --format pytorch-comms --out a.csv
try program --check a.csv --quiet
# The spellings of older files, and actions that mean nothing here.
printf '0F0,0F1,0BW0,0B1,0W1\n' > old.csv
try program old.csv
try program old.csv --quiet --format pytorch
printf '0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\r\n1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD\r\n' > theirs.csv
try program theirs.csv --format pytorch-comms
# A schedule that runs into itself is a program all the same, but no table of time slots.
try program --check deadlock.slp
try program deadlock.slp --format pytorch
