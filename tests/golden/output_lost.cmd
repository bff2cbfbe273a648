# What standard output swallowed is not success; a reader who leaves early is.
try() {
  echo "\$ $1"
  sh -c "$1"
  echo "→ exit $?"
}
try 'stageline list > /dev/full'
try 'stageline --help > /dev/full'
try 'stageline --version > /dev/full'
try 'stageline draw uniform:layers=4 --svg - > /dev/full'
try 'stageline program uniform:layers=4 --microbatches 4096 > /dev/full'
try 'stageline compare uniform:layers=4 >&-'
try 'stageline list no_such_flag > /dev/full'
try 'stageline compare uniform:layers=4 2> /dev/full > /dev/full'
# The file must not be opened as standard output.
try 'stageline draw uniform:layers=4 --quiet --svg $OUT/a.svg >&-'
try 'tail -n 1 $OUT/a.svg'
try 'stageline draw uniform:layers=4 --json $OUT/a.json >&-'
try 'head -c 1 $OUT/a.json; echo'
try 'stageline program uniform:layers=4 --out no_such_folder/a.slp'
# Redirected into the file that is asked for: nothing is lost.
try 'stageline program uniform:layers=4 --out /dev/stdout > $OUT/a.slp; stageline program --check $OUT/a.slp'
# SIGPIPE ends the writer quietly, and where it is ignored, so does what replaces it.
try 'stageline program uniform:layers=4 --microbatches 4096 | head -n 1'
try 'trap "" PIPE; { stageline program uniform:layers=4 --microbatches 4096; echo "exit $?" > $OUT/code; } | head -n 1; cat $OUT/code'
