# Two ops that wait for each other are named, with their places in the file and beside their neighbours.
cd "${OUT:-.}" || exit
stageline program uniform:layers=2 --schedule 1f1b --devices 2 --microbatches 4 --out good.slp
sed '/^gpu0/s/0F1 0B0/0B0 0F1/; /^gpu1/s/1F0 1B0 1F1/1F1 1F0 1B0/' good.slp > bad.slp
stageline program --check bad.slp
echo "exit code $?"
