stageline list
# One kind of names, a word that is none, and the help of a command, in either order.
stageline list collectives
stageline list nonsense
echo "→ exit $?"
stageline help list
stageline list --help | head -n 2
