# Which schedule wins where: as text, JSON and SVG, with what memory decides; what is refused.
trace=uniform:layers=16,forward=1ms,weights=1MB,output=4MB,stash=2MB
stageline phase $trace --devices 4 --microbatches 8 --schedule 1f1b,zb_h1,gpipe,zb_h2 --x link=100MB/s..100GB/s --y memory=40MB..100MB
stageline phase $trace --devices 4 --memory 60MB --schedule 1f1b,zb_h1,interleaved_1f1b --x link=100MB/s..100GB/s:log9 --y microbatches=4,6,8,16 --svg "$OUT/map.svg" --theme light --json "$OUT/map.json"
head -n 62 "$OUT/map.json"
tail -n 24 "$OUT/map.json"
/usr/bin/python3 ../report/wellformed.py "$OUT/map.svg" && echo well-formed
grep -c "<title>" "$OUT/map.svg"
grep -o 'title>link 100GB/s, microbatches 16[^<]*' "$OUT/map.svg"
stageline phase $trace --devices 4 --memory 1MB --schedule 1f1b,gpipe --x link=1GB/s..2GB/s:lin3 --y microbatches=4,8 --quiet; echo "exit $?"
stageline phase $trace --devices 4 --x link=1GB/s..2GB/s --y devices=2..4
stageline phase $trace --x link=1GB/s..2GB/s --y links=2..4
stageline phase $trace --x link=1GB/s..2GB/s --y link=2GB/s..4GB/s
stageline phase $trace --x link=2GB/s..1GB/s --y devices=2..4
stageline phase $trace --x link --y devices=2..4
stageline phase $trace --x link=1GB/s..2GB/s:random --y devices=2..4
stageline phase $trace --x link=1GB/s..2GB/s --y devices=2..4 --schedule 1f1c
stageline phase $trace --x link=1GB/s..2GB/s:log4000 --y memory=1GB..2GB:log4000 --schedule 1f1b
stageline phase $trace --x link=1GB/s..2GB/s
# Why there is no map, and what a reader must know of one.
stageline phase $trace --devices 4 --steps 2 --microbatches 6 --schedule interleaved_1f1b --x link=1GB/s..2GB/s:lin3 --y memory=1GB,2GB; echo "exit $?"
stageline phase resnet50-cpu --cluster h100x8 --devices 2 --schedule 1f1b,gpipe --x microbatches=2,4 --y memory=1GB,2GB
