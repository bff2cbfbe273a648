#!/usr/bin/env bash
# Does tools/test notice a broken build folder, and count test cases right? Exit code 1 if a claim
# fails.
# shellcheck source=tests/scripts/claims.sh
. "$(dirname "$0")/claims.sh"

# tools/scripts/quiet.sh, with a Meson that notes its calls and can be interrupted.
stub_meson() {
  stub meson <<EOS
[ "\$1" = --version ] && { echo 1.0.1; exit; }
echo "meson \$*" >>'$calls'
mkdir -p "\$2/meson-private" "\$2/meson-info"
echo x >"\$2/meson-private/coredata.dat"
[ -e '$work/interrupt' ] && exit 130
echo x >"\$2/meson-private/build.dat"
echo x >"\$2/build.ninja"
echo x >"\$2/meson-info/meson-info.json"
EOS
}
configure() {
  rc=0
  env -i PATH="$bin" bash -c "set -euo pipefail; cd '$work'; . '$root/tools/scripts/quiet.sh'
configure build $*" >"$work/out" 2>"$work/err" || rc=$?
}

begin 'configuring, interrupted and repeated'
tool mkdir
stub_meson
touch "$work/interrupt"
configure -Da=b
claim 'fails if interrupted' is "$rc" 130
rm "$work/interrupt"
touch "$work/build/half-written"
configure -Da=b
claim 'starts anew after that' is "$rc" 0
claim 'without what was left' not test -e "$work/build/half-written"
touch "$work/build/built"
configure -Da=b
claim 'leaves a whole folder alone' test -e "$work/build/built"
claim 'in silence' silent
configure -Da=c
claim 'starts anew for other options' not test -e "$work/build/built"
claim 'called Meson three times' count_is calls '^meson setup build' 3
rm "$work/build/build.ninja"
configure -Da=c
claim 'starts anew without build.ninja' count_is calls '^meson setup build' 4

# tools/scripts/count_tests.py.
counted() {  # lines of a testlog.json, from stdin
  cat >"$work/testlog.json"
  rc=0
  python3 tools/scripts/count_tests.py unit "$work/testlog.json" >"$work/out" 2>"$work/err" || rc=$?
  last=$(tail -n 1 "$work/out")
}
summary() { printf '[doctest] test cases: %s | %s passed | %s failed | %s skipped\\n' "$@"; }

begin 'counting what passed'
counted <<EOS
{"name": "sim", "result": "OK", "stdout": "$(summary 12 12 0 0)"}
{"name": "script", "result": "OK", "stdout": "fine"}
EOS
claim 'sums test cases, and a program without any as one' is "$last" '13 passed, 0 failed'
claim 'succeeds' is "$rc" 0

begin 'counting what failed'
counted <<EOS
{"name": "sim", "result": "FAIL", "stdout": "1 is not 2\n$(summary ' 5' ' 3' 2 0)"}
{"name": "leak", "result": "FAIL", "stdout": "$(summary 4 4 0 0)"}
{"name": "slow", "result": "TIMEOUT", "stdout": "[doctest] version"}
{"name": "crash", "result": "ERROR"}
EOS
claim 'counts a crash, a leak and a time limit as one each' is "$last" '7 passed, 5 failed'
claim 'shows the output' says out '1 is not 2'
claim 'names the program and how it ended' says out 'failed: slow (TIMEOUT)'
claim 'fails' is "$rc" 1

begin 'counting what was skipped'
given_up='TEST CASE:  profiles are read\n\na.cpp:3: MESSAGE: skipped: no folder\n\n'
counted <<EOS
{"name": "peer", "result": "SKIP", "stdout": "looking\nno SimGrid here\n\n"}
{"name": "data", "result": "OK", "stdout": "$given_up$(summary 3 3 0 0)"}
{"name": "part", "result": "OK", "command": ["x", "-tc=a*"], "stdout": "$(summary 1 1 0 9)"}
EOS
claim 'counts it apart' is "$last" '3 passed, 0 failed, 2 skipped'
claim 'gives the reason of a program' says out 'skipped: peer: no SimGrid here'
claim 'gives the reason of a test case' says out 'skipped: data: profiles are read: no folder'
claim 'succeeds' is "$rc" 0

begin 'counting nothing'
counted </dev/null
claim 'is a failure' is "$last" '0 passed, 1 failed'
rm "$work/testlog.json"
rc=0
python3 tools/scripts/count_tests.py unit "$work/testlog.json" >"$work/out" 2>&1 || rc=$?
claim 'as is a log that is not there' is "$rc $(tail -n 1 "$work/out")" '1 0 passed, 1 failed'

finish
