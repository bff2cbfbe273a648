# shellcheck shell=bash
# Sourced by the tests of our scripts: cases with a PATH that holds only stand-ins for what a script
# calls, and claims about what it said and did. Nothing is installed.
set -euo pipefail
cd -P "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD
export root
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# A new folder of stand-ins. stub NAME takes a script from stdin; tool NAME... takes the real thing.
begin() {
  case_name=$1 bin=$work/bin calls=$work/calls
  rm -rf "$bin" "$calls" "$work/build"
  mkdir "$bin"
  : >"$calls"
  tool bash env cat cut grep mktemp rm tail sed awk
}
stub() {
  { printf '#!/usr/bin/env bash\n' && cat; } >"$bin/$1"
  chmod +x "$bin/$1"
}
tool() {
  local name found
  for name in "$@"; do
    found=$(PATH=/usr/bin:/bin:$PATH type -P "$name")
    ln -s "$found" "$bin/$name"
  done
}

# The claims of a case.
claim() {  # what, command...
  local what=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "failed: $case_name: $what"
    for file in out err calls; do
      if [ -s "$work/$file" ]; then sed "s/^/  $file: /" "$work/$file"; fi
    done
  fi
}
is() { [ "$1" = "$2" ]; }
says() { grep -q -F -e "$2" "$work/$1"; }
silent() { [ ! -s "$work/out" ] && [ ! -s "$work/err" ]; }
not() { ! "$@"; }
count_is() { [ "$(grep -c -e "$2" "$work/$1")" = "$3" ]; }

# The last line of each test.
finish() {
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ]
}
