# Reports on a line of 80 columns and less, chosen columns and rows, long tables summed up.
export COLUMNS=80
stageline compare uniform:layers=8 --devices 4 --microbatches 12 --memory 40MB
echo
COLUMNS=60 stageline compare uniform:layers=8 --devices 4 --schedule 1f1b,gpipe --full --quiet
echo "\$ --columns"
stageline compare uniform:layers=8 --devices 4 --columns fits,exposed-comm,step --top 2 --schedule 1f1b,gpipe,zb_h1 --quiet
stageline compare uniform:layers=8 --devices 4 --columns step,bubbel
stageline compare uniform:layers=8 --devices 4 --top 3 --full
echo "\$ simulate"
stageline simulate uniform:layers=8 --schedule zb_h1 --devices 4 --microbatches 12
COLUMNS=0 stageline simulate uniform:layers=96 --schedule interleaved_1f1b:chunks=6 --devices 16 --quiet | sed -n '/^stage/,/^$/p'
stageline draw uniform:layers=30 --schedule gpipe --devices 30 --microbatches 4 | cut -c1-60
stageline bound uniform:layers=8 --devices 4 --microbatches 4
COLUMNS=40 stageline draw --help | head -20
