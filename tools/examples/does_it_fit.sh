# GPipe does not fit in 2 GB: exit code 1, and a change that makes it fit. 1F1B fits as it is.
cd "${OUT:-.}" || exit
stageline simulate resnet50-cpu --schedule gpipe --devices 4 --microbatches 32 --memory 2GB --quiet > gpipe.txt
echo "exit code $?"
grep -E 'peak memory .* on|with --recompute' gpipe.txt
stageline simulate resnet50-cpu --schedule 1f1b --devices 4 --microbatches 32 --memory 2GB --quiet | grep 'peak memory .* on'
