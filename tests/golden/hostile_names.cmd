# Names that would drive a terminal, or are HTML: in a trace, a file's name, a word that is typed, a report.
cd "$OUT"
stageline import uniform:layers=2,forward=1ms --out plain.json --quiet
sed -e 's/"name": "uniform2"/"name": "\\u001b]0;title\\u0007\\u001b[2Jmodel"/' \
    -e 's/"name": "layer0"/"name": "\\u001b[31mred\\u0000\\u009b\\nline"/' plain.json > hostile.json
stageline costs hostile.json
stageline compare hostile.json --schedule gpipe --devices 2
sed 's/"name": "uniform2"/"name": "two\\nlines"/' plain.json > lines.json
stageline compare lines.json --schedule gpipe --devices 2 | head -2
stageline costs lines.json | head -2
stageline plan lines.json --devices 2 --samples 4 --quiet 2>&1 | head -2
stageline draw lines.json --schedule gpipe --devices 2 --microbatches 2 | head -2
stageline simulate lines.json --devices 9 2>&1
stageline simulate hostile.json --schedule gpipe --devices 2 --microbatches 1 --json - | grep -a '"model"'
stageline program hostile.json --schedule gpipe --devices 2 --microbatches 1 | head -2
stageline simulate "$(printf 'no\033[31m\377such\a.json')" --schedule gpipe --devices 2 2>&1 | cut -c1-60
stageline simulate plain.json --schedule "$(printf 'g\033[2Jpipe')" --devices 2 2>&1 | cut -c1-60
stageline "$(printf '\033]0;x\a')" 2>&1 | cut -c1-60
printf '{"format": "stageline-trace 1", "name": "a\377b"}' > bytes.json
stageline costs bytes.json
