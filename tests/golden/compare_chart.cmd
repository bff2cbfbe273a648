# A sweep draws its speed-ups: a gap where a schedule is not possible, a small letter where it does not fit.
stageline compare uniform:layers=8 --schedule 1f1b,gpipe,pipedream:replicas=3-1 --devices 2..6 --microbatches 8 --memory 45MB
echo "\$ --quiet, beside a file"
stageline compare uniform:layers=8 --schedule 1f1b --devices 2..4 --microbatches 8 --quiet --svg "$OUT/sweep.svg" | tail -21
head -4 "$OUT/sweep.svg" | cut -c1-60
grep -c '<title>1f1b: ' "$OUT/sweep.svg"
echo "\$ --svg -"
stageline compare uniform:layers=8 --schedule 1f1b,gpipe --devices 2..4 --microbatches 8 --link 12GB/s,5us --memory 45MB --svg - |
  grep -E '<title>|^<path class="ln|font-size="1[02]"' | sed 's/ d="M[^Z]*Z"//'
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
try compare uniform:layers=8 --devices 4 --schedule gpipe,1f1b --svg "$OUT/steps.svg" --quiet
stageline compare model:llama3-8b@h100 --cluster h100x8 --pp 8 --microbatches 16 --schedule 1f1b,zb_h1 --svg - | grep -o "80 % of the published runs of the class lie within"
try compare uniform:layers=8 --devices 2..4 --svg - --json -
try compare uniform:layers=8 --devices 2..4 --theme dark
try compare uniform:layers=8 --devices 2..4 --schedule 1f1b --svg no_such_folder/a.svg
