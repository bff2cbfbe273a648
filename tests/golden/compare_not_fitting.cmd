# the answer is "no": exit 1
stageline compare uniform:layers=8 --schedule 1f1b,gpipe --devices 4 --memory 20MB --quiet
