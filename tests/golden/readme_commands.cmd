# Every command of the guide's block "What you can ask" works, on small inputs.
readme=$PWD/../../tools/guide/commands.md
cp small.graph.txt "$OUT"
cp ../evidence/small.evidence.json "$OUT/evidence.json"
cp ../traces/kineto/rank0.json.gz ../traces/kineto/rank1.json.gz "$OUT"
cd "$OUT"
awk '/^## /     { ours = /What you can ask/ }
     ours && /^```/ { inside = !inside; next }
     ours && inside { sub(/ +#.*/, ""); print }' "$readme" |
  sed 's/TRACE/resnet50-h100/; s|vgg16/graph.txt|small.graph.txt|' > commands
while read -r command; do
  echo "\$ $command"
  sh -c "$command" > /dev/null < /dev/null
  echo "→ exit $?"
done < commands
