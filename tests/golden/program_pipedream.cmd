stageline program small.graph.txt --partition 0-1,2- --schedule pipedream:replicas=2-1 --devices 3 --microbatches 4 --link 12GB/s
# What its runtime would do otherwise.
stageline program uniform:layers=4 --schedule gpipe --devices 2 --microbatches 4 --format pipedream --out $OUT/gpipe.json
stageline program uniform:layers=4 --schedule pipedream_2bw --devices 2 --microbatches 4 --format pipedream --out $OUT/2bw.json
stageline program 'model:gpt@a100,layers=12' --schedule 1f1b --devices 4 --partition 'Ettttt||ttt|ttttL' --format torchgpipe
