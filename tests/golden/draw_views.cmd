# Several schedules on one time axis, parts of a run, and pictures in other formats than SVG.
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
few() { grep -oE '>(gpipe|1f1b|Memory|Weights|idle|time, ms|[^<]* shown|step [^<]*)</text>' | sort | uniq -c; }
problem='uniform:layers=4 --devices 2 --microbatches 4'
# as text: columns of the same time
try draw $problem --schedule gpipe --schedule 1f1b --columns 40
echo "\$ --schedule gpipe,1f1b --svg -"
stageline draw $problem --schedule gpipe,1f1b --svg - | few
echo "\$ --panels timeline,memory"
stageline draw $problem --schedule gpipe,1f1b --panels timeline,memory --svg - | few
echo "\$ --panels memory --from 4ms --to 20ms"
stageline draw $problem --panels memory --from 4ms --to 20ms --svg - | few
try draw $problem --from 30ms
try draw $problem --from 30 --svg -
try draw $problem --from 3s --svg -
try draw $problem --from 3ms --to 2ms --svg -
try draw $problem --panels timelines --svg -
try draw $problem --schedule gpipe,1f1b --json -
try draw $problem --schedule gpipe,1f1b --chrome -
try draw $problem --svg - --pdf -
try draw $problem --panels memory
# seq1f1b counts chunks; an asynchronous run has a bubble of its steady pace
echo "\$ words of the head"
stageline draw model:gpt@h100,layers=4,batch=1 --schedule seq1f1b --devices 2 --microbatches 4 --svg - |
  grep -oE '>[^<]*chunk[^<]*</text>'
stageline draw $problem --schedule pipedream --svg - | grep -oE '>[^<]*(steady|bubble)[^<]*</text>'
# PDF and PNG by librsvg's rsvg-convert: what it is given, what it answers, and where it is missing
mkdir -p "$OUT/bin"
printf '#!/bin/sh\necho "$*" >&2\nhead -c 5\n' > "$OUT/bin/rsvg-convert"
chmod +x "$OUT/bin/rsvg-convert"
here=$PATH
PATH="$OUT/bin:$here"
try draw $problem --pdf -
echo
stageline draw $problem --schedule gpipe,1f1b --png "$OUT/a.png" --svg "$OUT/a.svg" | sed "s|$OUT|OUT|"
[ "$(head -c 5 "$OUT/a.svg")" = "$(cat "$OUT/a.png")" ] && echo "a.png is what is made of a.svg"
printf '#!/bin/sh\necho "no fonts" >&2\nexit 1\n' > "$OUT/bin/rsvg-convert"
try draw $problem --pdf -
rm "$OUT/bin/rsvg-convert"
ln -s "$(command -v stageline)" "$OUT/bin/stageline"
PATH="$OUT/bin"
try draw $problem --png -
PATH=$here
# The real one, where it is installed.
stageline draw uniform:layers=4 --devices 2 --microbatches 4 --schedule gpipe,1f1b --html - | grep -c "default-src 'none'"
stageline draw uniform:layers=4 --devices 2 --microbatches 4 --svg - --html -
stageline simulate uniform:layers=4 --devices 2 --microbatches 4 --json "$OUT/one" --html "$OUT/one" 2>&1 | sed 's/"[^"]*one"/"one"/'
stageline simulate uniform:layers=4 --devices 2 --microbatches 4 --json - --html -
if command -v rsvg-convert > /dev/null; then
  stageline draw $problem --pdf - | head -c 4 && echo
  stageline draw $problem --png - | head -c 4 | tail -c 3 && echo
else
  printf '%%PDF\nPNG\n'
fi
# Idle shares are those of the part that is drawn, also where it ends between two ops.
for part in '0 10ms' '4ms 13ms' '5ms 7ms'; do
  set -- $part
  stageline draw uniform:layers=4,forward=1ms,input_grad=1ms,weight_grad=1ms --schedule gpipe --devices 2 --microbatches 2 --from $1 --to $2 --svg - | grep -o '>[-0-9.]* %<' | tr '\n' ' '
  echo
done
stageline draw uniform:layers=4,forward=1ms,input_grad=1ms,weight_grad=1ms --schedule gpipe --devices 2 --microbatches 2 --columns 24 --quiet
# What numbers count, which rows there are, and the figure alone.
few_numbers() { grep -oE '<text class="[kw] n"[^>]*>[0-9U]+' | sed 's/.*>//' | sort | uniq -c | tr '\n' ' '; echo; }
echo "\$ --numbers"
two='uniform:layers=2 --devices 2 --microbatches 4 --schedule'
stageline draw $two chimera --panels timeline --svg - | few_numbers
stageline draw $two chimera --panels timeline --numbers from-1 --svg - | few_numbers
stageline draw $two chimera --panels timeline --numbers by-direction --svg - | few_numbers
stageline draw $two pipedream --panels timeline --numbers versions --svg - | few_numbers
echo "\$ --rows gpu1=last,gpu0 --title mine --plain"
stageline draw $problem --rows gpu1=last,gpu0 --title mine --plain --svg - | grep -oE '>(last|gpu[01]|mine)<|class="bg"|>Costs.*|>Note.*'
echo "\$ --aspect"
for shape in 16:9 1:2; do
  stageline draw $problem --aspect $shape --svg - | grep -oE '<svg[^>]*role|class="bg"[^/]*'
done
stageline sensitivity $problem --aspect 4:3 --svg - | grep -oE '<svg[^>]*role'
try draw $problem --aspect 16/9 --svg -
try draw $problem --aspect 5:1 --svg -
try draw $problem --aspect 16:9 --width 900 --svg -
try draw $problem --aspect 16:9
try draw $problem --rows gpu7 --svg -
try draw $problem --rows gpu1,gpu1 --svg -
try draw $problem --numbers from-1
try draw $problem --plain
try draw model:gpt@h100,layers=4,batch=1 --schedule seq1f1b --devices 2 --microbatches 4 --numbers from-1 --svg -
echo "\$ an outlier does not set the axis"
stageline draw uniform:layers=8 --devices 4 --microbatches 8 --schedule gpipe,1f1b,naive --svg - | grep -oE '>naive: Broken[^<]*|>time, ms|[+-]?[0-9.]+ % against gpipe' | sort | uniq -c
echo "\$ --arrows"
arrows() { stageline draw "$@" --svg - | grep -oE 'class="arrow a[agtw]"><title>[^<]*|>arrow: [^<]*|>(Arrows|No arrows|[0-9]+ arrows?) [^<]*' | sed 's/.*>//'; echo "→"; }
arrows $problem --arrows messages:0
arrows $problem --arrows messages:1 --to 10ms
arrows $problem --arrows weights
arrows uniform:layers=2 --devices 2 --microbatches 2 --steps 3 --schedule pipedream_2bw --arrows weights,messages:5
stageline draw $problem --arrows messages --svg - | grep -c 'class="arrow a[ag]"><title>'
try draw $problem --arrows messages:4 --svg -
try draw $problem --arrows weight --svg -
try draw $problem --arrows weights,weights --svg -
try draw $problem --arrows messages:0 --panels weights --svg -
try draw uniform:layers=8 --devices 8 --microbatches 32 --arrows messages --svg -
try draw $problem --arrows weights
