# All names; of the bundled traces three, so that new ones, measured on a GPU, change nothing here.
stageline list | sed '/^Bundled traces$/,$d'
stageline list traces | grep -E '^(Bundled traces|  (lenet5-cpu|gpt2-h100|uniform8) )'
# One kind of names, a word that is none, and the help of a command, in either order.
stageline list collectives
stageline list nonsense
echo "→ exit $?"
stageline help list
stageline list --help | head -n 2
# The same as JSON.
stageline list collectives --json - | head -n 8
stageline list --figures --json -
echo "→ exit $?"
