#!/usr/bin/env bash
# The command stageline-train, as a user types it: train.sh STAGELINE_TRAIN STAGELINE
set -uo pipefail
train=$(realpath "$1") stageline=$(realpath "$2")
# shellcheck source=tests/executor/await_handler.sh
. "$(dirname "$0")/await_handler.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0

fail() {
  printf 'failed: %s\n' "$1"
  failed=1
}

# Runs a command, and checks its exit code and a piece of what it says.
expect() {  # exit code, text that must be in the output, command...
  local want=$1 text=$2 said rc=0
  shift 2
  said=$("$@" 2>&1) || rc=$?
  if [ "$rc" != "$want" ] || ! grep -q -F -- "$text" <<<"$said"; then
    fail "$* gave $rc, wanted $want and \"$text\", said: $said"
  fi
}

trace='model:lenet5@h100,width=2,batch=8'
# shellcheck disable=SC2054  # commas within a word
small=(--data digits,train=200,test=50 --rate 0.01)

expect 0 'Exit code 0: done' "$train" --help
expect 0 'stageline-train 0' "$train" --version
expect 0 'spike_compensation' "$train" --corrections
expect 0 'textures' "$train" --data-names

# A log in both forms, weights for PyTorch, and what reads the log.
expect 0 'staleness, updates' "$train" "$trace" "${small[@]}" --schedule stale_weights \
  --partition ppv:1,2 --devices 5 --epochs 2 --json a.json --csv a.csv --weights-out a.pt
expect 0 'step,samples,simulated_seconds,loss,test_loss,test_accuracy' head -n 1 a.csv
[ "$(wc -l <a.csv)" = 52 ] || fail "a.csv has $(wc -l <a.csv) lines, wanted a head, 0 to 50"
expect 0 '"format": "stageline-training 1"' cat a.json
"$train" "$trace" "${small[@]}" --epochs 1 >said 2>/dev/full ||
  fail "a full standard error gave exit code $?: $(cat said)"
[ -s a.pt ] || fail 'no weights were written'
expect 0 '' "$train" "$trace" "${small[@]}" --schedule stale_weights --partition ppv:1,2 \
  --devices 5 --epochs 2 --pipelined-steps 0 --json plain.json --quiet
expect 0 'stale_weights' "$stageline" time-to-accuracy a.json plain.json --target 10%

# Both ways of training, and one that is killed again and again, end with the same weights.
# shellcheck disable=SC2054
same=("$trace" --data digits,train=2000,test=50 --schedule stale_weights --devices 3 --epochs 8
      --rate 0.01 --dtype fp64 --pipelined-steps 1600 --evaluate-every 50)
weights() { sed -n 's/.* weights \([0-9a-f]*\)$/\1/p'; }
whole=$("$train" "${same[@]}" --quiet | weights)
[ -n "$whole" ] || fail 'no digest of the weights'
[ "$("$train" "${same[@]}" --quiet --mode pipelined | weights)" = "$whole" ] ||
  fail 'the pipelined run has other weights'
for mode in delayed pipelined; do
  kills=0 resumed=
  for i in $(seq 40); do
    "$train" "${same[@]}" --mode "$mode" --checkpoint kept --checkpoint-every 50 --resume \
      --quiet >said 2>err &
    pid=$!
    sleep "0.$((3 + RANDOM % 6))"
    kill -KILL "$pid" 2>/dev/null
    rc=0
    wait "$pid" 2>/dev/null || rc=$?
    [ "$rc" != 137 ] || kills=$((kills + 1))
    resumed=$(weights <said)
    [ -z "$resumed" ] || break
    [ "$i" -lt 30 ] || break
  done
  if [ -z "$resumed" ]; then  # a slow machine: let the last one end
    resumed=$("$train" "${same[@]}" --mode "$mode" --checkpoint kept --resume --quiet | weights)
  fi
  [ "$resumed" = "$whole" ] || fail "$mode, killed $kills times: $resumed, not $whole ($(cat err))"
  [ "$kills" -gt 0 ] || fail "$mode was never killed"
  rm -f kept
done

# Ctrl-C: soon, with its own code; the checkpoint stays, the log is not written.
env --default-signal=INT "$train" "$trace" --steps 300000 --pipelined-steps 1000 --checkpoint kept --json lost.json \
  >said 2>err &
pid=$!
await_handler "$pid" "$train"
sleep 1
kill -INT "$pid"
rc=0
wait "$pid" || rc=$?
[ "$rc" = 130 ] || fail "Ctrl-C gave exit code $rc: $(tail -n 1 err)"
[ ! -e lost.json ] || fail 'a log was written after Ctrl-C'

# Muon with error feedback, and Nesterov: both modes end alike, and the log says what was trained.
for how in '--optimizer muon --correction error_feedback' '--correction nesterov --momentum 0.99'; do
  # shellcheck disable=SC2086  # words
  late=("$trace" "${small[@]}" --schedule pipedream --devices 3 --steps 40 --dtype fp64 --quiet $how)
  one=$("$train" "${late[@]}" --json how.json | weights)
  two=$("$train" "${late[@]}" --mode pipelined | weights)
  { [ -n "$one" ] && [ "$one" = "$two" ]; } || fail "$how: $one delayed, $two pipelined"
done
expect 0 '"correction": "nesterov"' cat how.json

# It diverges: said, and exit code 1; the log is written.
expect 1 'it diverged' "$train" "$trace" --schedule stale_weights --steps 60 --rate 100 \
  --json nan.json
expect 0 'null' cat nan.json

refused() {  # text, arguments...
  local text=$1
  shift
  expect 2 "$text" "$train" "$trace" "$@"
}
refused 'did you mean "digits"?' --data digit
refused 'there is no folder' --json nowhere/a.json
refused 'did you mean "stash"?' --correction stach
refused 'give one of them' --steps 10 --epochs 2
refused 'there are not so many' --steps 10 --pipelined-steps 11
refused '--rate must be above 0' --rate 0
refused '--milestones must rise' --milestones 20,10
refused 'try --data digits' --data textures,train=20,test=10
refused 'name its --schedule' --program some.slp
refused 'means --weights stash' --correction stash --weights latest
refused 'needs --optimizer momentum' --correction spike_compensation --optimizer sgd
refused 'needs --optimizer momentum' --correction nesterov --optimizer muon
refused 'how the velocity moves the weights' --correction nesterov+spike_compensation
refused 'sgd, momentum, adam, muon' --optimizer muno
refused 'pipedream_2bw' --correction double_buffer --schedule stale_weights
refused 'give each its own' --json same --csv ./same
refused 'requires --checkpoint' --resume
refused 'read again' --steps 500000 --json a.json
refused 'take 20 or 22' --schedule pipedream:replicas=2-1 --devices 3 --steps 21
expect 2 'is no built-in model' "$train" uniform:layers=4
expect 2 'reads sequences' "$train" model:gpt@h100,layers=1,hidden=64,seq=8,vocab=99 --data digits
expect 2 'TRACE is required' "$train"
exit "$failed"
