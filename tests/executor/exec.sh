#!/usr/bin/env bash
# Does stageline-exec run what it is given, refuse what it cannot, and leave nothing behind?
#   exec.sh STAGELINE-EXEC STAGELINE [several]    several: with processes, too
set -euo pipefail
exec_tool=$(realpath "$1") stageline=$(realpath "$2") several=${3:-}
# shellcheck source=tests/executor/await_handler.sh
. "$(dirname "$0")/await_handler.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "failed: $*"; exit 1; }
cores=$(nproc)
on=cpu:$((cores < 2 ? 1 : 2))
stages=${on#cpu:}
trace='model:gpt@cpu-core,batch=2,layers=2,hidden=32,heads=2,seq=8,vocab=50'
gpt=(--model gpt,layers=2,hidden=32,heads=2,seq=8,vocab=50)

# The program that `stageline program` prints runs, and what came out is whole.
"$stageline" program "$trace" --schedule gpipe --devices "$stages" --microbatches 4 >gpipe.slp
"$exec_tool" "$trace" "${gpt[@]}" --program gpipe.slp --devices "$on" --runs 2 --quiet \
  --json out.json --svg out.svg --chrome out.trace >said 2>err || fail "a program: $(cat err)"
grep -q 'measured' said || fail 'no measured time is said'
python3 - <<'PY' || fail 'the JSON is not what it should be'
import json
out = json.load(open('out.json'))
assert out['microbatches'] == 4 and len(out['measured']['losses']) == 2
assert {s['lane'] for s in out['timeline']} <= {'compute', 'send', 'receive'}
assert len(out['measured']['makespan_ps']) == 2 and min(out['measured']['makespan_ps']) > 0
json.load(open('out.trace'))
PY
grep -q '</svg>' out.svg || fail 'the SVG is not whole'

# Where standard error is full, what is said there is lost, and nothing else.
rc=0
"$exec_tool" uniform8 --schedule 1f1b --devices cpu:2 --microbatches 2 --imitate --runs 1 --json full.json >said 2>/dev/full || rc=$?
[ "$rc" = 0 ] && grep -q measured said && [ -s full.json ] || fail "a full standard error gave $rc: $(cat said)"

refused() {  # words that must be said, arguments...
  local words=$1
  shift
  if "$exec_tool" "$@" >said 2>err; then fail "not refused: $*"; else rc=$?; fi
  [ "$rc" = 2 ] || fail "exit code $rc, not 2: $*"
  [ "$(grep -vc '^LibTorch' err)" -ge 1 ] && grep -q -- "$words" err || fail "$* said: $(cat err)"
}
refused 'wants 4096 cores' "$trace" "${gpt[@]}" --devices cpu:4096
refused "no accelerators are called 'tpu:2'" "$trace" "${gpt[@]}" --devices tpu:2
refused "no accelerators are called 'cuda:0'" "$trace" "${gpt[@]}" --devices cuda:0
refused 'parted by twos' "$trace" "${gpt[@]}" --devices cuda:2@7
[ -e /dev/nvidiactl ] || refused 'there is no cuda' "$trace" "${gpt[@]}" --devices cuda:2
refused 'is no built-in model' uniform8 --devices cpu:1
refused 'has 21 layers' "$trace" --model resnet20 --devices cpu:1
cat >stuck.slp <<'SLP'
stageline-program 1
microbatches: 1
stage 0: gpu0
gpu0: 0B0 0F0
SLP
refused 'cannot finish' "$trace" "${gpt[@]}" --program stuck.slp --partition 0- --devices cpu:1

# Ctrl-C: soon, with its own code, without a file.
env --default-signal=INT "$exec_tool" "$trace" "${gpt[@]}" --devices "$on" --runs 100000 --json lost.json --quiet >said 2>err &
pid=$!
await_handler "$pid" "$exec_tool"
sleep 1
kill -INT "$pid"
rc=0
wait "$pid" || rc=$?
[ "$rc" = 130 ] || fail "Ctrl-C gave exit code $rc: $(cat err)"
[ ! -e lost.json ] || fail 'a file was written after Ctrl-C'

# Compute imitated: more devices than cores, any trace, no losses; nothing is faster than predicted.
imitated() {  # devices
  "$exec_tool" uniform8 --schedule zb_h1 --devices "$1" --microbatches 8 --imitate --runs 2 --link 500MB/s,1ms \
    --json imitated.json >said 2>err || fail "imitated on $1: $(cat err)"
  grep -q "zb_h1 on $1, imitated: " said && grep -q 'imitated by timed waits' said || fail "$1 is not labelled: $(cat said)"
  python3 - <<'PY' || fail "the JSON of an imitated run on $1 is not what it should be"
import json
measured = json.load(open('imitated.json'))['measured']
assert measured['imitated'] is True and 'losses' not in measured and 'peak_bytes' not in measured, measured
assert min(measured['makespan_ps']) >= 0.97 * measured['predicted_makespan_ps'], measured
PY
}
imitated cpu:4
refused 'cpu:N or process:N' uniform8 --devices cuda:2 --imitate

# Replicas of the whole pipeline, with the optimizer's state whole or divided, train as one pipeline does that has
# all their micro-batches.
train() {  # file, arguments...
  local file=$1
  shift
  "$exec_tool" "$trace" "${gpt[@]}" --schedule 1f1b --shared-cores --memory 8GB --dtype fp64 --runs 2 --quiet --json "$file" \
    "$@" >said 2>err || fail "$*: $(cat err)"
}
alike() {  # files
  python3 - "$@" <<'PY' || fail "runs differ: $*"
import json, sys
one, *others = (json.load(open(n))['measured']['losses'] for n in sys.argv[1:])
assert len(one) == 2 and len(one[0]) == 4, one
for other in others:
    assert all(abs(a - b) < 1e-9 for x, y in zip(one, other) for a, b in zip(x, y)), (one, other)
PY
}
train one.json --devices cpu:2 --microbatches 4
train whole.json --devices cpu:4 --replicas 2 --microbatches 2
grep -q '1f1b on cpu:4, 2 replicas: ' said || fail "replicas are not named: $(cat said)"
train sharded.json --devices cpu:4 --replicas 2 --microbatches 2 --zero 1
grep -q 'optimizer state' said || fail "no optimizer state is shown: $(cat said)"
alike one.json whole.json sharded.json
# Sequences of unequal lengths, and slices: as replicas, and cut, they train as they do in one pipeline and whole.
train lengths.json --devices cpu:2 --microbatches 4 --lengths 8,3,5,1
grep -q 'measured' said || fail "no unequal run: $(cat said)"
train twice.json --devices cpu:4 --replicas 2 --microbatches 2 --lengths 8,3
train order.json --devices cpu:2 --microbatches 4 --lengths 8,8,3,3
alike twice.json order.json
rc=0
(alike one.json lengths.json) >/dev/null 2>&1 || rc=$?
[ "$rc" = 1 ] || fail 'lengths change nothing'
"$exec_tool" "$trace" "${gpt[@]}" --schedule seq1f1b:sequence_chunks=4 --shared-cores --memory 8GB --devices cpu:2 \
  --microbatches 2 --runs 1 >said 2>err || fail "slices: $(cat err)"
grep -q 'slices are predicted as equal shares' said || fail "nothing is said on slices: $(cat said)"
"$exec_tool" "$trace" "${gpt[@]}" --schedule 1f1b --shared-cores --memory 8GB --devices cpu:2 --microbatches 2 --runs 1 \
  --lengths 8,3 >said 2>err || fail "lengths: $(cat err)"
grep -q 'sequences have 3 to 8 tokens; the trace is taken to be of their mean, 5.5' said ||
  fail "nothing is said on lengths: $(cat said)"
refused '9 tokens is longer than the 8 places' "$trace" "${gpt[@]}" --schedule 1f1b --devices cpu:2 --shared-cores \
  --microbatches 2 --lengths 9,8
refused '3 equal slices do not divide' "$trace" "${gpt[@]}" --schedule seq1f1b:sequence_chunks=3 --devices cpu:2 \
  --shared-cores --microbatches 2
refused '3 devices cannot be divided among 2 replicas' "$trace" "${gpt[@]}" --devices cpu:3 --shared-cores --replicas 2
refused 'divides its state among the replicas' "$trace" "${gpt[@]}" --devices cpu:2 --shared-cores --zero 1
refused 'F, I and W on different devices' "$trace" "${gpt[@]}" --schedule pipefb --devices cpu:4 --memory 8GB --shared-cores --replicas 2

[ -n "$several" ] || exit 0
imitated process:4
train processes.json --devices process:4 --replicas 2 --microbatches 2 --zero 1
alike one.json processes.json
"$exec_tool" uniform8 --schedule 1f1b --devices process:2 --microbatches 2 --imitate --runs 1 >said 2>/dev/full ||
  fail "a full standard error among processes: $(cat said)"
# As many processes give the same losses as threads, to the last digits that a sum's order leaves.
same=("$trace" "${gpt[@]}" --schedule pipedream --microbatches 4 --dtype fp64 --runs 2 --quiet)
"$exec_tool" "${same[@]}" --devices cpu:"$stages" --json threads.json >/dev/null 2>&1
"$exec_tool" "${same[@]}" --devices process:"$stages" --json processes.json >said 2>err ||
  fail "processes: $(cat err)"
python3 - <<'PY' || fail 'processes and threads do not agree'
import json
one, other = (json.load(open(n + '.json'))['measured']['losses'] for n in ('threads', 'processes'))
assert len(one) == 2 and all(
    abs(a - b) < 1e-9 for x, y in zip(one, other) for a, b in zip(x, y)), (one, other)
PY
# Ctrl-C among processes: none is left. Other tests run the same program, so this one's file is looked for.
env --default-signal=INT "$exec_tool" "$trace" "${gpt[@]}" --devices process:"$stages" --runs 100000 --json "$work/none.json" --quiet >said 2>err &
pid=$!
await_handler "$pid" "$exec_tool"
sleep 3
kill -INT "$pid"
wait "$pid" && fail 'interrupted processes ended well'
if pgrep -f "$work/none.json" >/dev/null; then fail 'a process was left'; fi
