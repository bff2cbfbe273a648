stageline compare small.graph.txt --batch 32 --schedule gpipe,gpipe:recompute=always,1f1b,pipedream --devices 2..4 --link 12GB/s,5us --memory 100MB --microbatches 8
stageline compare uniform:layers=8 --schedule gpipe,1f1b --devices 2,4,8
