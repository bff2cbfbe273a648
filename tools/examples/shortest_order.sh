# The shortest order of a step that holds at most three stashes, with its proof.
stageline optimal uniform:layers=4 --devices 4 --microbatches 8 --limit 3 --quiet
