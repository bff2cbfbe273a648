# A schedule as the CSV that torch.distributed.pipelining loads, and back.
cd "${OUT:-.}" || exit
stageline program uniform:layers=2 --schedule zb_h1 --devices 2 --microbatches 3 --format pytorch --out zb_h1.csv --quiet
cat zb_h1.csv
stageline simulate uniform:layers=2 --program zb_h1.csv --quiet | grep step
