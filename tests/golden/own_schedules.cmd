# One's own schedule where schedules are named: each command, and what is refused.
cd "$OUT"
try() {
  echo "\$ stageline $*"
  stageline "$@" 2>&1
  echo "→ exit $?"
}
stageline program uniform:layers=8 --schedule zb_h1 --devices 4 --microbatches 8 | sed '/^schedule:/d' > mine.slp
stageline program uniform:layers=8 --schedule 1f1b --devices 4 --microbatches 8 --format pytorch --out order.csv
T="uniform:layers=8"
try compare $T --schedule 1f1b,mine.slp,order.csv --quiet
try simulate $T --schedule mine.slp --devices 4 --microbatches 8 --quiet | head -n 4
try bound $T --schedule mine.slp --quiet | tail -n 7
try draw $T --schedule gpipe,./mine.slp --quiet | head -n 4
try whatif $T --schedule zb_h1,mine.slp --jitter 5% --scenarios 20 --quiet | head -n 5
try sensitivity $T --schedule mine.slp --quiet | head -n 4
try plan $T --devices 4 --samples 8 --schedule mine.slp --quiet
try phase $T --devices 4 --schedule gpipe,mine.slp --x link=1GB/s..10GB/s:log3 --y microbatches=4,8 --quiet
try sweep $T --axis schedule=1f1b,mine.slp --axis microbatches=4,8 --out rows --merge --quiet
gzip -dc rows/table.csv.gz | cut -d, -f 1-4
gzip -dc rows/table.csv.gz | grep -o '".*"'
# The command of a row names the path, and the numbers that the program has said.
stageline compare $T --schedule 1f1b,mine.slp --html page.html --quiet > said.txt
tr -d '\n' < page.html | sed 's/.*id="stageline-data">//; s/<.*//' | base64 -d | gzip -dc |
  grep -ao 'stageline simulate [^"]*' | sort -u
# The names that are refused.
try simulate $T --schedule 1f1b.slp
try simulate $T --schedule mine
try simulate $T --schedule mine.slp:limit=2p
try simulate $T --schedule 1f1b,mine.slp
# Equal numbers are no contradiction, others are one.
try simulate $T --program mine.slp --devices 4 --microbatches 8 --steps 1 --quiet | head -n 2
try simulate $T --program mine.slp --devices 8
try simulate $T --program mine.slp --microbatches 6
try simulate $T --program mine.slp --weights stash
try hybrid $T --schedule mine.slp
sed 's/0F3/0X3/' mine.slp > wrong.slp
try compare $T --schedule 1f1b,wrong.slp
