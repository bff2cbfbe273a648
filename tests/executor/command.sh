#!/usr/bin/env bash
# The command stageline-profile, as a user types it: command.sh STAGELINE_PROFILE STAGELINE
set -uo pipefail
profile=$(realpath "$1") stageline=$(realpath "$2")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0

# Runs a command, and checks its exit code and a piece of what it says.
expect() {  # exit code, text that must be in the output, command...
  local want=$1 text=$2 said rc=0
  shift 2
  said=$("$@" 2>&1) || rc=$?
  if [ "$rc" != "$want" ] || ! grep -q -F -- "$text" <<<"$said"; then
    printf 'failed: %s\n  exit code %s, wanted %s\n  said: %s\n  wanted: %s\n' \
      "$*" "$rc" "$want" "$said" "$text"
    failed=1
  fi
}

expect 0 resnet110 "$profile" --models
expect 0 'Exit code 0: done' "$profile" --help
expect 0 'stageline-profile 0' "$profile" --version

# Two batch sizes, read by the command that they are for.
expect 0 'check: the layers add up' \
  "$profile" lenet5 --batch 4,2 --rounds 4 --seconds 0 --bound 1000 --out a.json --samples a.csv
expect 0 'lenet5 · 7 layers' "$stageline" costs a.json
expect 0 'measured: ' "$stageline" compare a.json --devices 2 --microbatches 4
expect 0 'batch,layer,op,round,us' head -n 1 a.csv
expect 0 '2,conv1,F,0,' cat a.csv

# A full standard error loses what is said there, and nothing else.
"$profile" lenet5 --batch 2 --rounds 4 --seconds 0 --bound 1000 --out full.json >/dev/null 2>/dev/full
expect 0 'lenet5 · 7 layers' "$stageline" costs full.json

# To standard output goes the trace and nothing else.
"$profile" lenet5 --batch 2 --rounds 4 --seconds 0 --bound 1000 --out - 2>said >b.json
expect 0 'lenet5 · 7 layers' "$stageline" costs b.json
expect 0 'LibTorch' cat said

# A batch size that fails does not lose those before it.
expect 2 'try a smaller --batch' \
  "$profile" lenet5 --batch 2,1073741824 --rounds 4 --seconds 0 --bound 1000 --out c.json
expect 0 'batches of 2 images' "$stageline" costs c.json
expect 0 '"source": "stageline-profile lenet5 --batch 2,1073741824 --rounds 4 --seconds 0' cat c.json
rm c.json

# What is unfit is not written over what is there.
cp a.json before.json
expect 1 'unfit' "$profile" lenet5 --batch 2 --rounds 4 --seconds 0 --bound 0.000001 --out a.json
expect 0 '' cmp a.json before.json

expect 2 'did you mean "lenet5"?' "$profile" lenet
expect 2 'did you mean "layers"?' "$profile" gpt,layer=2
expect 2 'MODEL is required' "$profile"
expect 2 'there is no folder "nowhere"' "$profile" lenet5 --out nowhere/a.json
expect 2 'it is a folder' "$profile" lenet5 --out .
expect 2 'there is no cuda:99' "$profile" lenet5 --device cuda:99
expect 2 'write cpu, cuda' "$profile" lenet5 --device gpu
expect 2 'fp32, fp64' "$profile" lenet5 --dtype bf16
expect 2 'did you mean "adam"?' "$profile" lenet5 --optimizer adan
expect 2 'core' "$profile" lenet5 --cores 4095
expect 2 'thread' "$profile" lenet5 --threads 0
expect 2 '--sms goes with --device cuda' "$profile" lenet5 --sms 8
expect 2 '--batch' "$profile" lenet5 --batch 4,0
expect 2 '--bound' "$profile" lenet5 --bound nan
expect 2 'only cpu, cuda' "$profile" lenet5 --device meta
expect 2 'try a smaller --batch' "$profile" lenet5 --batch 1073741824
expect 2 '--help' "$profile" lenet5 --bath 3

# Interrupted, it leaves nothing.
timeout -s INT 3 "$profile" resnet20 --batch 8 --seconds 600 --steady 0.0001 --out c.json \
  >/dev/null 2>&1
[ $? = 124 ] || { echo 'failed: it ended before it was interrupted, or did not end'; failed=1; }
[ -z "$(find . -name '*c.json*')" ] || { echo 'failed: interrupted, it leaves a file'; failed=1; }

exit "$failed"
