# A row of each of nine settings, as a table.
cd "${OUT:-.}" || exit
stageline sweep resnet50-cpu --axis schedule=gpipe,1f1b,zb_h1 --axis devices=2..4 --out runs --merge --quiet
gzip -dc runs/table.csv.gz | cut -d, -f1-4
