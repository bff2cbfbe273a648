stageline program uniform:layers=4 --schedule 1f1b --devices 4 --microbatches 4 --out $OUT/p.slp
stageline program --check $OUT/p.slp | sed "s|$OUT|OUT|"
stageline simulate uniform:layers=8 --program $OUT/p.slp --quiet
