stageline reproduce --only shares --output $OUT/made
echo "exit $?"
ls $OUT/made $OUT/made/figures
stageline reproduce --only share
echo "exit $?"
# The same as JSON.
stageline reproduce --only shares --json - | head -n 24
