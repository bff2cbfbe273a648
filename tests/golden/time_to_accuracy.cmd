# Two seeds of a plain, a pipelined and a hybrid training: means, time to the target, the switch;
# on other devices; as JSON and as pictures; what cannot be.
logs=../training/logs
stageline time-to-accuracy $logs/plain.1.json $logs/plain.2.json $logs/stale.1.json $logs/stale.2.json $logs/hybrid.1.json $logs/hybrid.2.json
echo "exit $?"
stageline time-to-accuracy $logs/plain.?.json $logs/stale.?.json --target 95% --quiet
echo "exit $?"
stageline time-to-accuracy $logs/stale.1.json $logs/plain.1.json --target 0.97 | tail -5
stageline time-to-accuracy $logs/stale.1.json --target 97% >"$OUT/none.txt"
echo "exit $?"
stageline time-to-accuracy $logs/plain.?.json $logs/stale.?.json $logs/hybrid.?.json --target 70% --trace uniform:layers=4,forward=20ms,batch=32 --link 12GB/s,5us
stageline time-to-accuracy $logs/plain.1.json $logs/stale.1.json --json - | head -60
stageline time-to-accuracy $logs/hybrid.1.json $logs/stale.1.json --json - | grep -A 40 '"switches"'
stageline time-to-accuracy $logs/plain.1.json $logs/stale.1.json --svg - | head -1
stageline time-to-accuracy $logs/hybrid.1.json $logs/stale.1.json --switch-svg - | grep -c '<title>pipedream: '
try() {
  stageline time-to-accuracy "$@"
  echo "exit $?"
}
try $logs/plain.1.json $logs/plain.1.json
try $logs/plain.1.json --trace lenet5-cpu
try $logs/plain.1.json --link 12GB/s
try $logs/plain.1.json --target 97
try $logs/plain.1.json --target high
try $logs/plain.1.json --target 0%
try $logs/plain.1.json $logs/stale.1.json --switch-svg "$OUT/a.svg"
try $logs/plain.1.json --svg - --json -
try small.graph.txt
try measured.json
try no_such_file.json
