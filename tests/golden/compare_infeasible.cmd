# pipedream:replicas fits no number of devices but four: a row that says so, not an error
stageline compare uniform:layers=8 --schedule 1f1b,pipedream:replicas=3-1 --devices 2..4 --microbatches 8
