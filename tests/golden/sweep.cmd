# Thousands of settings: what was made, what a scenario is, what is refused.
say() { echo; echo "> $*"; "$@"; echo "exit $?"; }
cd "$OUT"
trace=uniform:layers=8,forward=1ms,weights=1MB,output=1MB,stash=2MB
say stageline sweep "$trace" --axis schedule=1f1b,zb_h1,chimera --axis devices=2..4 --axis link=1GB/s..100GB/s:log3 --microbatches 6 --memory 26MB --out runs --merge
gunzip -c runs/table.csv.gz
say stageline sweep --show 15 --out runs
say stageline sweep "$trace" --axis schedule=1f1b,zb_h1,chimera --axis devices=2..4 --axis link=1GB/s..100GB/s:log3 --microbatches 6 --memory 26MB --out runs
cat > shards.json <<'FILE'
{"format": "stageline-sweep 1",
 "fixed": {"trace": "uniform:layers={layers},forward=1ms", "link": "{bandwidth},5us", "devices": 4},
 "axes": {"layers": [8, 12], "bandwidth": "1GB/s..9GB/s:randomlog"},
 "draws": 3, "chunk": 4}
FILE
stageline sweep shards.json --out parts --shard 1/2 --json - | grep -v hash
say stageline sweep --merge --out parts
say stageline sweep shards.json --out parts --shard 2/2
say stageline sweep --merge --out parts
gunzip -c parts/table.csv.gz
say stageline sweep "$trace" --devices 4 --jitter 5% --axis scenario=0..2 --out drawn --merge --quiet
gunzip -c drawn/table.csv.gz
say stageline sweep "$trace" --axis devices=2..4 --out runs
say stageline sweep "$trace" --axis device=2..4 --out other
say stageline sweep "$trace" --axis devices=4..2 --out other
say stageline sweep "$trace" --axis devices=2,x --out other
say stageline sweep "$trace" --axis devices=2..4 --devices 8 --out other
say stageline sweep "$trace" --axis devices=2..4 --schedule 1f1b,gpipe --out other
say stageline sweep "$trace" --axis microbatches=1..100000 --axis steps=1..100000 --out other
say stageline sweep "$trace" --axis devices=2..4 --out other --shard 0/4
say stageline sweep "$trace" --axis devices=2..4 --out other --shard 1/4 --merge
say stageline sweep "$trace" --axis devices=2..4 --out shards.json
say stageline sweep "$trace" --axis devices=2..4 --out /proc/none
say stageline sweep "$trace" --axis devices=2..4
say stageline sweep --merge --out nowhere
say stageline sweep shards.json --axis devices=2..4 --out other
say stageline sweep "$trace" --axis devices=2..3 --schedule 1f1b --out grown
say stageline sweep resnet50-cpu --axis slow=gpu0:1.2,gpu1:1.5 --cluster h100x8 --devices 2 --schedule 1f1b --out notes
say stageline sweep no-such-trace --axis devices=2..4 --out other
say stageline sweep "$trace" --axis devices=2..3 --partition 0-999 --out none
say stageline sweep --out other
say stageline sweep --help
