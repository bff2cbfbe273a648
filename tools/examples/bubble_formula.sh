# The bubble of p stages and m micro-batches is (p-1)/(m+p-1), and is found again by simulation.
for m in 1 4 16 64; do
  stageline simulate uniform:layers=4 --schedule gpipe --devices 4 --microbatches $m --json - --quiet |
    python3 -c "import json, sys; print($m, round(json.load(sys.stdin)['bubble_fraction'], 6), round(3 / ($m + 3), 6))"
done
