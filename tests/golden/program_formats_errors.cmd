# What the formats of other tools cannot hold, and files that break their rules.
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
file() {
  printf "$1" > file.csv
  printf "\$ printf '%s' > file.csv; stageline program --check file.csv\\n" "$1"
  stageline program --check file.csv
  echo "→ exit $?"
}
cp *.slp "$OUT"
cd "$OUT"
try program uniform:layers=4 --format pytroch
try program deadlock.slp --format chakra --out here
try program deadlock.slp --devices 3
try program deadlock.slp --compute-only --schedule gpipe
try program --check deadlock.slp --format pytorch
try program uniform:layers=4 --schedule pipedream:replicas=3-1 --format pytorch
try program uniform:layers=4 --schedule gpipe:recompute=always --format pytorch
try program uniform:layers=4 --schedule stale_weights --devices 3 --format pytorch
try program uniform:layers=4 --steps 2 --format pytorch-comms
printf 'stageline-program 1\nmicrobatches: 2\nstage 0: gpu0\ngpu0: 0F1 0F0 0B1 0B0\n' > last_first.slp
try program last_first.slp --format pytorch
try program uniform:layers=4 --schedule pipefb --format pipedream
try program uniform:layers=4 --schedule gpipe:reverse=yes --format pipedream
try program uniform:layers=4 --schedule pipedream:replicas=3-1 --format torchgpipe
try program uniform:layers=4 --format megatron
try program model:gpt@a100,layers=12 --devices 4 --format megatron
try simulate model:gpt@a100,layers=12 --devices 4 --partition 'Et*6|t*6L'
try simulate model:gpt@a100,layers=12 --devices 4 --partition 'Et|t|t|x'
try simulate model:gpt@a100,layers=12 --devices 4 --partition 'Et||tL'
file '0F0,0B0,0X0\n'
file '0F0,0B0\n0F1,0B1\n'
file '0F0,0W0,0I0\n'
file '0F0,0F1,0B0,0B1\n1F0,1B0\n'
file '0F0,,0SEND_F0,0B0\n1F0,1B0\n'
file '0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n'
try simulate uniform:layers=2 --program file.csv
