# how stale the weights are, how many versions are held, and whose backward reads others
stageline simulate uniform:layers=3 --schedule pipedream --devices 3 --microbatches 6 --steps 1
stageline simulate uniform:layers=3 --schedule pipedream --weights latest --devices 3 \
  --microbatches 6 --steps 1 --quiet | grep -e stage -e F
stageline simulate uniform:layers=4 --schedule pipedream:replicas=3-1 --devices 4 --microbatches 6 \
  --steps 1 --timeline --json $OUT/run.json --quiet > /dev/null
python3 - $OUT/run.json << 'end'
import json, sys
for stage in json.load(open(sys.argv[1]))["per_stage"]:
    for key in ("staleness_updates", "staleness_histogram", "consistent_weights",
                "backward_reads_other_version", "backward_reads_later_by_updates"):
        print(stage["stage"], key, stage[key])
    for held in stage["versions_held"]:
        print(stage["stage"], held)
end
