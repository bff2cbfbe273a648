# Edit a schedule as text, have it checked, and see what the change is worth.
cd "${OUT:-.}" || exit
stageline program uniform:layers=4 --schedule 1f1b --devices 4 --microbatches 8 --out 1f1b.slp
sed '/^gpu0/s/0B0 0F4 0B1 0F5 0B2 0F6 0B3 0F7/0F4 0B0 0F5 0B1 0F6 0B2 0F7 0B3/' 1f1b.slp > mine.slp
stageline program --check mine.slp
stageline diff 1f1b.slp mine.slp --trace uniform:layers=4,output=20MB --link 20GB/s | grep -E 'first|step'
