# Bad input of costs: one sentence, exit 2.
try() {
  echo "\$ stageline costs $*"
  stageline costs "$@"
  echo "→ exit $?"
}
try
try no_such_trace
try uniform:layers=3 --against model:resnet18@h100
try uniform:layers=3 --against no_such_trace
try uniform:layers=3 --against-batch 4
try uniform:layers=3 --against uniform:layers=3 --against-batch 4
try uniform:layers=3 --by size
try uniform:layers=3 --top 0
try uniform:layers=3 --microbatch-size 0
try small.graph.txt --microbatch-size 32
try uniform:layers=200,forward=100000s
try uniform:layers=8,weights=4000000TB
try uniform:layers=3 --json no_such_folder/a.json
