# The researchers' bench is a program of its own, which the command becomes.
stageline-lab --help
mkdir "$OUT/tools"
cp "$(command -v stageline)" "$OUT/tools/stageline"
"$OUT/tools/stageline" replay evidence.json
echo "→ exit $?"
mkdir "$OUT/bin"
cp "$(command -v stageline)" "$OUT/bin/stageline"
"$OUT/bin/stageline" reproduce
echo "→ exit $?"
stageline replay nothing.json.gz
echo "→ exit $?"
