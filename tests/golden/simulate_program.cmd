stageline program uniform:layers=4 --schedule 1f1b --devices 4 --microbatches 4 --out $OUT/p.slp
stageline program --check $OUT/p.slp | sed "s|$OUT|OUT|"
stageline simulate uniform:layers=8 --program $OUT/p.slp --quiet
# Read back, a schedule whose F and I are apart is cut as it was.
Q="uniform:layers=16 --devices 4 --schedule stale_weights --microbatches 8"
stageline simulate $Q | grep -E 'step|cut'
stageline program $Q --steps 8 --out $OUT/apart.slp
stageline simulate uniform:layers=16 --program $OUT/apart.slp | grep -E 'step|cut'
# Data-parallel ranks that the text states.
stageline program uniform:layers=4 --schedule 1f1b --devices 4 --dp 2 --microbatches 4 --link 1GB/s --out $OUT/ranks.slp
stageline simulate uniform:layers=4 --program $OUT/ranks.slp --link 1GB/s | grep -E 'step|data_ranks'
stageline simulate uniform:layers=4 --program $OUT/ranks.slp --link 1GB/s --dp 2 | grep step
stageline simulate uniform:layers=4 --program $OUT/ranks.slp --link 1GB/s --dp 4
