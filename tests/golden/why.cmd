# Where the difference between two schedules comes from, side by side, as JSON and as a picture; by
# device; Shapley values; a limit of memory and jitter as causes; and what is refused.
stageline compare resnet50-h100 --cluster h100x8 --schedule 1f1b,zb_h1 --microbatches 32 --why --quiet | sed -n '/Where/,$p'
stageline compare uniform:layers=8 --devices 4 --microbatches 8 --schedule gpipe:recompute=always,1f1b --why --jitter 5% --quiet | sed -n '/Where/,$p'
stageline simulate resnet50-h100 --cluster h100x8 --schedule 1f1b --microbatches 32 --why=shapley --full --quiet | sed -n '/^cause/,/^gpu7/p'
stageline simulate uniform:layers=8 --schedule zb_auto:limit=2 --devices 4 --microbatches 8 --why --quiet | sed -n '/^cause/,/^→/p'
stageline simulate uniform:layers=8 --schedule 1f1b --devices 4 --microbatches 8 --why --jitter 10% --scenarios 200 --quiet | sed -n '/^cause/,/^→/p'
stageline compare uniform:layers=8 --devices 4 --schedule gpipe,1f1b --why --json - | grep -A 80 '"waterfall_difference"'
stageline compare uniform:layers=8 --devices 4 --schedule gpipe,1f1b --why --svg - | grep -c '<rect'
stageline simulate uniform:layers=8 --devices 4 --why --svg - --theme dark | grep -o '<title>[^<]*' | head -n 3
# With --full the picture has a bar a device, too.
for full in '' --full; do
  stageline simulate resnet50-h100 --cluster h100x8 --schedule 1f1b --microbatches 32 --why $full --svg - | grep -o 'By device<\|title>gpu0, [^<]*'
  echo "→ $full"
done
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
try compare uniform:layers=8 --devices 4 --why
try compare uniform:layers=8 --devices 4 --schedule 1f1b --why
try compare uniform:layers=8 --devices 2..4 --schedule 1f1b,gpipe --why
try compare uniform:layers=8 --devices 4 --schedule 1f1b,gpipe --why=both
try simulate uniform:layers=8 --devices 4 --svg a.svg
try simulate uniform:layers=8 --devices 4 --jitter 5%
# From 100 % of the devices' peak.
stageline simulate model:llama3-8b@h100 --cluster 'h100x8*2' --tp 4 --pp 2 --dp 2 --sequence-parallel --microbatches 8 --why=peak --quiet | sed -n '/^part/,/^$/p'
stageline simulate uniform:layers=8 --devices 4 --microbatches 8 --why=peak --json - | grep -A 20 '"from_peak"'
stageline simulate uniform:layers=8 --devices 4 --why=peak --svg -
stageline compare uniform:layers=8 --devices 4 --schedule gpipe,1f1b --why=peak
