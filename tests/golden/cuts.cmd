# The best cut by simulation, and several cuts side by side.
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
pcie="model:resnet50@v100,batch=16 --cluster v100x4-pcie --microbatches 32"
try compare $pcie --schedule 1f1b,gpipe,layerpipe --partition balanced --partition simulated:most=60 --quiet
try compare $pcie --schedule 1f1b --partition simulated:most=60 | tail -6
try compare $pcie --schedule 1f1b,zb_h1 --partition blocks --partition balanced --quiet
try compare $pcie --schedule 1f1b --partition balanced --partition simulated:most=40 --quiet --json - |
  grep -A7 -e '"cut"' -e '"cut_search"'
try simulate $pcie --partition simulated:most=40 | grep 'note: '
try simulate uniform:layers=6 --devices 3 --partition simulated | grep 'note: '
try draw uniform:layers=6 --devices 3 --microbatches 4 --partition simulated --quiet
llama="model:llama3-70b@h100 --cluster h100x8*8 --tp 8 --pp 8 --microbatches 8"
try program $llama --partition simulated:blocks,most=20 --format megatron
try bound uniform:layers=6 --devices 3 --partition simulated | head -3
stageline program uniform:layers=4 --devices 2 --microbatches 2 --out "$OUT/mine.slp"
stageline simulate uniform:layers=4 --program "$OUT/mine.slp" --partition simulated 2>&1 | sed "s|$OUT/||"
try simulate uniform:layers=6 --devices 3 --partition simulated:mots=5
try simulate uniform:layers=6 --devices 3 --partition simulated:most=none
try simulate uniform:layers=6 --devices 3 --partition simulated:blocks
try simulate uniform:layers=2 --devices 3 --partition simulated
try simulate uniform:layers=6 --devices 3 --schedule layerpipe --partition simulated
