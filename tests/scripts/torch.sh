#!/usr/bin/env bash
# Are the right LibTorch and the right reasons found, in folders that only look like one? Exit code 1
# if a claim fails.
# shellcheck source=tests/scripts/claims.sh
. "$(dirname "$0")/claims.sh"

# A LibTorch under a prefix; a torch package if a third argument says so.
libtorch() {  # prefix, version[, package]
  mkdir -p "$1/lib" "$1/include/ATen" "$1/include/torch/csrc/api/include/torch"
  touch "$1/lib/libtorch_cpu.so" "$1/include/ATen/ATen.h"
  if [ -n "${3:-}" ]; then
    printf "__version__ = '%s'\ncuda = None\n" "$2" >"$1/version.py"
    touch "$1/__init__.py"
  else
    printf '#define TORCH_VERSION \\\n  "%s"\n' "$2" \
      >"$1/include/torch/csrc/api/include/torch/version.h"
  fi
}
find_torch() {
  rc=0
  env -i PATH="$bin:/usr/bin:/bin" PYTHONPATH="${packages:-}" VIRTUAL_ENV="${environment:-}" \
    /usr/bin/env python3 "$root/tools/executor/find_torch.py" "$@" >"$work/out" 2>"$work/err" ||
    rc=$?
}
said() { grep -q -x -F -e "$1"$'\t'"$2" "$work/out"; }

begin 'a torch package, by its folder'
libtorch "$work/site/torch" 2.7.1+cpu package
find_torch auto "$work/site/torch"
claim 'succeeds' is "$rc" 0
claim 'is of that kind' said kind wheel
claim 'has its version' said version 2.7.1+cpu
claim 'has no CUDA' said cuda no
claim 'needs C++17' said cpp_std c++17
claim 'links with three libraries, by full path' count_is out '^library.*/site/torch/lib/' 3
claim 'has two header folders' count_is out '^include' 2
find_torch system "$work/site/torch"
claim 'is not one of another kind' is "$rc" 3
claim 'and that is the reason' says out 'is a LibTorch of the kind wheel, not system'

begin 'a torch package, by an interpreter'
packages=$work/site
find_torch wheel /usr/bin/python3
claim 'is found without being imported' said version 2.7.1+cpu
find_torch auto
claim 'and comes first where nothing is named' said kind wheel
stub python-without <<<'echo'
find_torch wheel python-without
claim 'another has none' says out 'python-without has no torch package; to get one: '
claim 'which is told by the exit code' is "$rc" 3
environment=$work/nowhere
find_torch wheel
claim 'an active environment is asked first' says out "$work/nowhere/bin/python3 does not run"
unset packages environment

begin 'a torch package with CUDA'
touch "$work/site/torch/lib/libtorch_cuda.so"
mkdir -p "$work"/site/nvidia/{cuda_runtime,cublas}/{include,lib}
touch "$work/site/nvidia/cuda_runtime/include/cuda_runtime_api.h"
find_torch wheel "$work/site"
claim 'is seen' said cuda yes
claim 'links with that too' count_is out '^library.*/lib/lib\(torch_cuda\|c10_cuda\).so$' 2
claim 'has the headers that lie beside it' count_is out '^cuda_include' 2
claim 'and the libraries' count_is out '^cuda_library_dir' 2

begin 'a torch package with the old C++ ABI'
mkdir -p "$work/site/torch/share/cmake/Torch"
echo 'set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=0")' \
  >"$work/site/torch/share/cmake/Torch/TorchConfig.cmake"
find_torch wheel "$work/site/torch"
claim 'is refused' is "$rc" 3
claim 'with the reason' says out 'has the C++ ABI of before g++ 5'

begin 'an installed LibTorch'
libtorch "$work/opt" 1.13.0
find_torch auto "$work/opt"
claim 'is of that kind' said kind system
claim 'has its version, from a header' said version 1.13.0
rm "$work/opt/lib/libtorch_cpu.so"
find_torch auto "$work/opt"
claim 'is none without its library' says out 'has no lib/libtorch_cpu.so'
find_torch auto "$work/nothing"
claim 'nor is a folder that is not there' says out 'neither a folder nor a Python interpreter'

# tools/executor/torch_for_tests, with a Python that notes what is asked of pip.
torch_for_tests() {
  rc=0
  (cd "$work" && env -i PATH="$bin" PIP_FIND_LINKS="$links" bash \
    "$root/tools/executor/torch_for_tests" "$@") >"$work/out" 2>"$work/err" || rc=$?
}
begin_for_tests() {
  begin "$1"
  tool mkdir touch sort dirname
  rm -rf "$work/build-tests"
  stub python3 <<EOS
case "\$*" in
  *'find_torch.py wheel')
    echo 'no torch here; to get one: buy it'
    exit 3 ;;
  *find_torch.py*) echo 'kind	wheel' ;;
  *'pip config'*) exit 1 ;;
  *'pip install'*)
    echo "\$* \$PIP_CONFIG_FILE" >>'$calls'
    $2 ;;
esac
EOS
}

begin_for_tests 'no Python torch, no local wheels' 'exit 1'
links=https://example.org/wheels
torch_for_tests wheel
claim 'gives up' is "$rc" 3
claim 'says why' says out 'no torch here, and pip'\''s find-links names no local folder'
claim 'asks pip for nothing' not says calls 'pip install'

begin_for_tests 'no Python torch, but a local wheel' 'mkdir build-tests/torch-2.13.0'
links="https://example.org/wheels file://$work/site"
torch_for_tests wheel
claim 'succeeds' is "$rc" 0
claim 'unpacks it' is "$(cat "$work/out")" "$work/build-tests/torch-2.13.0/torch"
claim 'without the network' says calls "--no-index --no-deps --find-links $work/site --target"
claim 'and without what else pip is told to ask' says calls '/dev/null'
torch_for_tests wheel
claim 'does so once' count_is calls 'pip install' 1

begin_for_tests 'no Python torch, and other local wheels' 'echo ERROR: no such thing; exit 1'
links=$work/site
torch_for_tests wheel
claim 'gives up' is "$rc" 3
claim 'says what pip said' says out 'pip has no file of torch 2.13.0: ERROR: no such thing'

finish
