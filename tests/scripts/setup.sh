#!/usr/bin/env bash
# Does tools/setup ask apt-get for the right things, and only when something is missing?
# Exit code 1 if a claim fails.
# shellcheck source=tests/scripts/claims.sh
. "$(dirname "$0")/claims.sh"

demo_packages='g++ meson ninja-build pkgconf python3 libboost-graph-dev libfmt-dev
nlohmann-json3-dev libeigen3-dev libcli11-dev zlib1g-dev libtomlplusplus-dev libyaml-cpp-dev libsqlite3-dev ccache'

user() { stub id <<<"echo $1"; }

# dpkg-query that knows the given packages as installed, and lists one as removed and one as half
# installed.
installed() {
  # shellcheck disable=SC2048  # written into a script, where it is words again
  stub dpkg-query <<EOS
echo dpkg-query >>'$calls'
for name in $* ; do echo "ii  \$name"; done
echo 'rc  meson'
echo 'iU  ccache'
echo 'dpkg-query: no packages found' >&2
exit 1
EOS
}
# apt-get that notes how it was called and does as told by the rest of its script.
apt() {
  stub apt-get <<EOS
echo "apt-get frontend=\$DEBIAN_FRONTEND \$*" >>'$calls'
$1
EOS
}
run() {  # arguments of tools/setup
  rc=0
  env -i PATH="$bin" TMPDIR="$work" "$root/tools/setup" "$@" >"$work/out" 2>"$work/err" \
    </dev/null || rc=$?
}

begin 'nothing is missing'
user 0
# shellcheck disable=SC2086  # one word per package
installed $demo_packages
apt 'exit 1'
run demo
claim 'succeeds' is "$rc" 0
claim 'says nothing' silent
claim 'asks dpkg-query once and apt-get never, so that the demo needs no LibTorch' \
  is "$(cat "$calls")" dpkg-query

begin 'packages are missing, as root'
user 0
installed g++ ninja-build pkgconf python3 libboost-graph-dev libfmt-dev libeigen3-dev libcli11-dev \
  zlib1g-dev libtomlplusplus-dev libyaml-cpp-dev libsqlite3-dev
apt 'exit 0'
run demo
claim 'succeeds' is "$rc" 0
claim 'says what and why' says out \
  'what the demo needs and this machine lacks: meson nlohmann-json3-dev ccache'
claim 'calls apt-get twice' count_is calls '^apt-get' 2
claim 'updates first' is "$(sed -n '2s/ -.*update$/ update/p' "$calls")" \
  'apt-get frontend=noninteractive update'
claim 'installs exactly what is missing' grep -q -E \
  ' install --no-install-recommends meson nlohmann-json3-dev ccache$' "$calls"
claim 'asks no questions' count_is calls 'frontend=noninteractive -y -q' 2
claim 'waits for another dpkg' count_is calls 'DPkg::Lock::Timeout=120' 2

begin 'a release needs Emscripten and the headers of Python, and no tests'
user 0
# shellcheck disable=SC2086
installed $demo_packages
apt 'exit 0'
run release
claim 'succeeds' is "$rc" 0
claim 'installs exactly that' grep -q -E \
  ' --no-install-recommends libprotobuf-dev protobuf-compiler python3-dev python3-venv emscripten$' "$calls"

begin 'the tests need more than the demo'
user 0
# shellcheck disable=SC2086
installed $demo_packages
apt 'exit 0'
run tests
claim 'succeeds' is "$rc" 0
claim 'installs doctest' says calls ' doctest-dev '
claim 'installs what Chakra traces are written with' says calls ' libprotobuf-dev protobuf-compiler'
claim 'does not install LibTorch' not says calls libtorch
run all
claim 'all of them succeed' is "$rc" 0
claim 'need clang 14' says calls ' clang-14 libclang-rt-14-dev clang-tidy-14 clang-format-14'
claim 'and LibTorch, and with it the BLAS it should find' says calls \
  ' libtorch-dev libopenblas0-pthread'
claim 'does not install what is there' not says calls ' meson '

begin 'a newer system without clang 14'
user 0
# shellcheck disable=SC2086
installed $demo_packages
apt 'exit 0'
stub apt-cache <<<'[[ $2 == *-14* ]] && exit 100; echo "Package: $2"'
run all
claim 'succeeds' is "$rc" 0
claim 'says what there is not' says out 'this system has no package clang-tidy-14'
claim 'installs the rest' grep -q ' install .* libtbb-dev .*libtorch-dev' "$calls"
claim 'asks for nothing that is not offered' not says calls clang
run tests
claim 'leaves nothing out of what the tests need' says calls ' doctest-dev '

begin 'all that a newer system has is installed'
user 0
stub dpkg-query <<<'shift 3; for name; do [[ $name == *-14* ]] || echo "ii  $name"; done'
apt 'exit 1'
stub apt-cache <<<'[[ $2 == *-14* ]] && exit 100; echo "Package: $2"'
run all
claim 'succeeds' is "$rc" 0
claim 'says nothing' silent
claim 'never calls apt-get' is "$(cat "$calls")" ''

begin 'not root, with sudo'
user 1000
installed g++
apt 'exit 0'
stub sudo <<EOS
echo "sudo \$*" >>'$calls'
[ "\$1" = -n ] && shift
exec "\$@"
EOS
tool true
run demo
claim 'succeeds' is "$rc" 0
claim 'installs through sudo' grep -q '^sudo env .*apt-get .* install .* meson ' "$calls"
claim 'never calls apt-get without it' is "$(grep -c '^sudo env' "$calls")" \
  "$(grep -c '^apt-get' "$calls")"

begin 'not root, without sudo'
user 1000
installed g++
apt 'exit 0'
run demo
claim 'exits 2' is "$rc" 2
claim 'calls no apt-get' not says calls apt-get
claim 'gives the command' says err \
  'apt-get update && apt-get install --no-install-recommends meson '
claim 'explains in one message' count_is err '^setup: ' 1

begin 'apt-get fails'
user 0
installed g++
apt '[[ $* == *install* ]] && { echo "E: no space left on the moon"; exit 100; }; exit 0'
run demo
claim 'exits 1' is "$rc" 1
claim 'shows what apt-get said' says err 'no space left on the moon'
claim 'gives the command' says err 'apt-get install --no-install-recommends meson'
claim 'leaves no file behind' is "$(find "$work" -name 'stageline-setup*')" ''

begin 'the lists cannot be fetched'
user 0
installed g++
apt '[[ $* == *update* ]] && { echo "E: some list"; exit 100; }; exit 0'
run demo
claim 'succeeds all the same' is "$rc" 0

begin 'another apt-get is at work'
user 0
installed g++
stub sleep <<<"echo sleep >>'$calls'"
apt "[ -e '$work/free' ] && exit 0
touch '$work/free'
echo 'E: Could not get lock /var/lib/apt/lists/lock'
exit 100"
tool touch
run demo
claim 'succeeds' is "$rc" 0
claim 'waits and tries again' count_is calls '^sleep$' 1
claim 'updates twice' count_is calls ' update$' 2

begin 'no apt-get, nothing there'
run demo
claim 'exits 2' is "$rc" 2
claim 'says what a package is' says err 'Meson 1.0 or later [meson]'
claim 'says what is missing' says err 'missing: a C++20 compiler'

begin 'no apt-get, but all the programs and headers'
stub meson <<<'echo 1.4.0'
stub ninja <<<'exit 0'
stub pkg-config <<<'exit 0'
stub python3 <<<'exit 0'
stub g++ <<<'exit 0'
run demo
claim 'goes on' is "$rc" 0
claim 'says nothing' silent

begin 'no apt-get, and a Meson that is too old'
stub meson <<<'echo 0.61.2'
stub ninja <<<'exit 0'
stub pkg-config <<<'exit 0'
stub python3 <<<'exit 0'
stub g++ <<<'exit 0'
run demo
claim 'exits 2' is "$rc" 2
claim 'names Meson' says err 'missing: Meson 1.0 or later'
claim 'names nothing else' count_is err 'missing:' 1

begin 'no apt-get, and one header missing'
stub meson <<<'echo 1.4.0'
stub ninja <<<'exit 0'
stub pkg-config <<<'exit 0'
stub python3 <<<'exit 0'
stub g++ <<<'! grep -q -F "__has_include(<CLI/CLI.hpp>)"'
run demo
claim 'exits 2' is "$rc" 2
claim 'names the header' says err 'missing: the header <CLI/CLI.hpp>'
claim 'names nothing else' count_is err 'missing:' 1

begin 'no apt-get, and no zlib'
stub meson <<<'echo 1.4.0'
stub ninja <<<'exit 0'
stub pkg-config <<<'exit 0'
stub python3 <<<'exit 0'
stub g++ <<<'! grep -q -F "__has_include(<zlib.h>)"'
run demo
claim 'exits 2' is "$rc" 2
claim 'names zlib' says err 'missing: the header <zlib.h>'

begin 'an unknown purpose'
run lunch
claim 'exits 2' is "$rc" 2
claim 'shows the usage' says err 'usage: tools/setup demo|tests|release|all'

finish
