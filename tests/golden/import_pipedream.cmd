stageline import small.graph.txt --batch 32
# What was read, as JSON.
stageline import small.graph.txt --batch 32 --out "$OUT/trace.json" --json -
stageline import small.graph.txt --batch 32 --json - || echo "exit $?"
