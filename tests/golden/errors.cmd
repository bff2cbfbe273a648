# Bad input: one sentence, exit 2. Each command stands before what it says.
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
try
try compare
try compare no_such_trace
try compare model:resnet5@h100
try compare model:resnet50
try compare model:resnet50@h1000
try compare model:resnet50@h100,batch=0
try compare model:resnet50@h100 --devices 9
try compare uniform:layers=3 --devices 4 --schedule 1f1b,gpipe
try compare uniform:layers=3,forward=1
try simulate uniform:layers=4 --schedule stale_weights --devices 3 --weights flush
try simulate uniform:layers=4 --schedule pipefb --devices 1
try bound uniform:layers=4 --schedule pipefb:nodes=2-3 --devices 4
try bound uniform:layers=4 --schedule pipefb:nodes=2147483647-1 --devices 4
try simulate uniform:layers=4 --schedule layerpipe --devices 2 --partition uniform
try compare uniform:layers=8 --schedule 1f2b
try compare uniform:layers=8 --schedule Interleave1F1B
try compare uniform:layers=8 --schedule gpipe:recompute=sometimes
try compare uniform:layers=8 --schedule gpipe:again=1
try compare uniform:layers=8 --devices 0
try compare uniform:layers=8 --devices 4..2
try compare uniform:layers=8 --devices 2,8,4
try compare uniform:layers=8 --link fast
try compare uniform:layers=8 --memory -1GB
try compare uniform:layers=8 --memory 16
try simulate uniform:layers=8 --schedule pipefb --host-memory 16
try simulate uniform:layers=8 --host-link 5
try compare uniform:layers=8,weights=4
try compare uniform:layers=8 --within 1
try compare uniform:layers=8 --device 4
try compare --device=4
try compare uniform:layers=8 --micro-batches 4 --device 4
try compare uniform:layers=8 gpipe 1f1b
try compare uniform:layers=8 --microbatches 0
try compare uniform:layers=8 --microbatches many
try compare uniform:layers=8 --microbatches 0x10
try compare uniform:layers=8 --microbatches 008 --steps 1.5
try simulate uniform:layers=8 --quiet=no
try simulate uniform:layers=8 --devices 2 --devices 4
try compare uniform:layers=8 --microbatches
try compare uniform:layers=8 --devices ""
try draw uniform:layers=8 --html ""
try sweep uniform:layers=8 --axis "" --out "$OUT/none"
try simulate uniform:layers=8 -devices 4
try --devices 4 simulate uniform:layers=8
for flag in --mem --gpus --verbose; do try simulate uniform:layers=8 "$flag" 4; done
try simulate uniform:layers=8 --sharing fiar
try simulate uniform:layers=8 --zero 4
try help frobnicate
try layerpipe
try ZBV
try resnet50-cpu
try uniform:layers=8
try simulate resnet-50
try simulate llama3-8b@h100
try simulate llama3-8b
for command in simulate draw program bound optimal hybrid sensitivity; do
  try "$command" uniform:layers=8 --devices 2..4
done
try whatif uniform:layers=8 --devices 2..4 --jitter 5%
try simulate uniform:layers=8 --recompute selective
try simulate deadlock.slp
echo '{"model_type": "llama", "hidden_size": 4096}' > "$OUT/config.json"
printf '%s\n' 'stageline-program 1' 'microbatches: 1' 'weigths: flush' 'stage 0: gpu0' 'gpu0: 0F0 0B0' > "$OUT/misspelt.slp"
: > "$OUT/empty.json"
stageline import uniform:layers=2 --out "$OUT/trace.json" --quiet
(
  cd "$OUT"
  try simulate config.json
  try simulate uniform:layers=2 --program misspelt.slp
  try simulate uniform:layers=2 --calibration empty.json
  try simulate uniform:layers=2 --calibration trace.json
  try whatif uniform:layers=2 --perturb trace.json
  try sweep swep.json --out runs
)
try phase uniform:layers=8 --x schedule=1f1b,gpipe --y devices=2..4
try import kinto profile.json
try compare uniform:layers=8 --cluster h100
try compare uniform:layers=8 --cluster h100x8 --link 1GB/s
try compare uniform:layers=8 --partition 0-3,5- --devices 2
try compare uniform:layers=8 --partition blanced --devices 2
try compare uniform:layers=8 --weights new
try compare uniform:layers=8 --program deadlock.slp
try simulate uniform:layers=8 --schedule 1f1b,gpipe
try simulate uniform:layers=8 --program deadlock.slp
try simulate uniform:layers=8 --program no_such_file.slp
try simulate uniform:layers=8 --program small.graph.txt
try simulate uniform:layers=8 --timeline
try draw uniform:layers=8 --theme purple
try draw uniform:layers=8 --svg .
try program
try program --check no_such_file.slp
try program uniform:layers=8 --json -
try program uniform:layers=8 --check deadlock.slp
try program --check deadlock.slp --devices 3
try draw uniform:layers=8 --theme dark
try draw uniform:layers=8 --svg - --columns 40
try draw uniform:layers=8 --svg - --chrome -
try draw uniform:layers=8 --svg no_such_folder/a.svg
try compare uniform:layers=8 --batch 32
try import list.cmd --batch 32
try import list.cmd
try import .
try frobnicate
