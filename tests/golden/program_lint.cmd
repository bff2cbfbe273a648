# All that is wrong with a program, and what it costs. Each command stands before what it says.
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
try program --check lint_errors.slp
try program --check lint_errors.slp --json -
try program --check lint.slp
try program --check lint.slp --messages batched
try program --check lint.slp --messages batched --quiet uniform:layers=2,forward=4ms,output=1MB --link 1GB/s
try program --check lint.slp --messages blocking
try program --check lint.slp --messages now
try program --check lint.slp --microbatches 4
