# Three schedules on one time axis, as a picture, and the same for Perfetto.
cd "${OUT:-.}" || exit
stageline draw uniform:layers=4 --schedule gpipe,1f1b,zb_h1 --devices 4 --microbatches 8 --svg three.svg --quiet
stageline draw uniform:layers=4 --schedule 1f1b --devices 4 --microbatches 8 --chrome 1f1b.json --quiet
python3 -c "import json; print(sum(one['ph'] == 'X' for one in json.load(open('1f1b.json'))['traceEvents']), 'spans')"
