# What a calibration refuses, and that its file is one that a simulation takes.
ask() { echo "\$ stageline calibrate $*"; stageline calibrate "$@" 2>&1 || echo "→ exit $?"; }
ask nowhere.csv
ask points.csv
ask points.csv --kind v100
ask points.csv --kind a100 --free gem | sed "s/; those of a chip.*//"
ask points.csv --kind a100 --free gemm,gemm
ask small.graph.txt
ask
ask points.csv --kernels small.graph.txt
ask points.csv --page -
ask --kernels small.graph.txt
grep -E '^(id|c|d)' points.csv > "$OUT/unusable.csv"
(cd "$OUT" && ask unusable.csv)
# The figures are those of the cost model, and not of this test.
stageline calibrate points.csv --kind a100 --quiet --threads 1 --out "$OUT/one.json" > "$OUT/one"
stageline calibrate points.csv --kind a100 --quiet --threads 3 --out "$OUT/three.json" > "$OUT/three"
cmp "$OUT/one" "$OUT/three" && cmp "$OUT/one.json" "$OUT/three.json" && echo "threads: the same"
sed -n '/refused:/,$p' "$OUT/one"
stageline calibrate points.csv --kind a100 --out - | grep -E '^  "(format|kind|source)"'
stageline simulate model:llama3-8b@a100 --schedule 1f1b --devices 4 --calibration "$OUT/one.json" > "$OUT/with"
stageline simulate model:llama3-8b@a100 --schedule 1f1b --devices 4 > "$OUT/without"
cmp -s "$OUT/with" "$OUT/without" || echo "a simulation with it differs"
# Few runs: what the file rests on, what cannot be, and the answer that carries the range.
grep -E '^(id|a)' points.csv | sed 's/,precision,/,framework,precision,/; s/,2,,1,2,/,2,Megatron-Core,,1,2,/' > "$OUT/few.csv"
stageline calibrate "$OUT/few.csv" --out "$OUT/few.json" | grep -A2 'rests on' | sed 's|within .* of the|within … of the|'
grep -A1 rests_on "$OUT/few.json" | sed 's/"low.*//'
stageline simulate model:llama3-8b@a100,software=megatron-core-2024 --cluster a100x8 --pp 8 --microbatches 8 \
  --schedule 1f1b --calibration "$OUT/few.json" | grep -A1 'other runs'
sed 's/0.35/0.0035/' "$OUT/few.csv" > "$OUT/fast.csv"
(cd "$OUT" && ask fast.csv)
sed '2{p;s/Megatron-Core/Megatron-DeepSpeed/}' "$OUT/few.csv" > "$OUT/two.csv"
(cd "$OUT" && ask two.csv)
sed '1s/step_time_s/log/; 2s/0.35/run.log/' "$OUT/few.csv" > "$OUT/logged.csv"
head -1 ../traces/logs/deepspeed.txt > "$OUT/run.log"
(cd "$OUT" && ask logged.csv)
tac ../traces/logs/deepspeed.txt > "$OUT/run.log"
(cd "$OUT" && ask logged.csv)
# The figures as JSON, in place of the calibration.
stageline calibrate points.csv --kind a100 --quiet --threads 1 --json - | grep -E '^  "(kind|source|rows|other_devices)"'
ask points.csv --kind a100 --out - --json -
