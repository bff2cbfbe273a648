# The shortest order under a limit: proved in closed form, by branch and bound, in a V where no bound
# in closed form comes near; in bytes; as JSON, as a program that other commands take. Bad input.
stageline optimal uniform:layers=4 --devices 4 --microbatches 8 --quiet
stageline optimal uniform:layers=4 --devices 4 --microbatches 8 --limit 3
stageline optimal uniform:layers=4 --devices 4 --microbatches 8 --limit 2 --goal makespan --quiet
stageline optimal uniform:layers=8 --devices 4 --microbatches 4 --limit 4 --placement v --quiet
stageline optimal uniform:layers=8 --devices 4 --microbatches 6 --memory 30MB --quiet
stageline optimal resnet50-h100 --cluster h100x8 --devices 4 --microbatches 8 --limit 2 --quiet
stageline optimal uniform:layers=2 --devices 2 --microbatches 2 --limit 1 --json -
stageline optimal uniform:layers=2 --devices 2 --microbatches 3 --limit 2 --out -
stageline optimal uniform:layers=4 --limit 0
stageline optimal uniform:layers=4 --time soon
stageline optimal uniform:layers=4 --devices 2..4
stageline optimal uniform:layers=4 --memory 1MB
stageline optimal uniform:layers=4 --chunks 2
stageline optimal uniform:layers=2 --devices 2 --microbatches 2 --out - --json -
stageline optimal uniform:layers=2 --devices 2 --microbatches 2 --out - --json $OUT/o.json | head -n 1; grep '"optimal"' $OUT/o.json
stageline optimal uniform:layers=4,weights=4MB --devices 8 --dp 2 --link 1GB/s,5us --microbatches 4 --quiet
stageline optimal uniform:layers=4,weights=4MB --devices 8 --dp 2 --link 1GB/s,5us --all-pipelines
