# Every command that a --help prints as an example works, on small inputs.
cp small.graph.txt "$OUT"
for log in plain stale hybrid; do cp ../training/logs/$log.1.json "$OUT/$log.json"; done
cp ../launch/runs/megatron.log "$OUT/train.log"
cp ../evidence/small.evidence.json "$OUT/evidence.json"
cp points.csv "$OUT/points.csv"
gzip -dc ../../tools/executor/studies/staleness.json.gz > "$OUT/staleness.json"
cd "$OUT"
stageline --help | awk '/^Subcommands:/ { inside = 1; next } inside && /^  [a-z]/ { print $1 }' > subcommands
while read -r subcommand; do
  echo "$subcommand"
  stageline "$subcommand" --help |
    awk '/^Example:/ { inside = 1; next }
         inside && (more || /^ *stageline /) { more = /\\$/; sub(/\\$/, ""); sub(/^ +/, "")
                                               printf "%s%s", $0, more ? "" : "\n" }' |
    sed 's|vgg16/graph.txt|small.graph.txt|; /time-to-accuracy/s|model:lenet5@h100|uniform:layers=4|' > commands
  while read -r command; do
    echo "\$ $command"
    sh -c "$command" > /dev/null < /dev/null
    echo "→ exit $?"
  done < commands
done < subcommands
