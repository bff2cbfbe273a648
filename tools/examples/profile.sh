# Two profiles of torch.profiler: why each rank was idle, and the run predicted again.
profiles=$(cd ../../tests/traces/kineto && pwd)
cd "${OUT:-.}" || exit
stageline import kineto "$profiles/rank0.json.gz" "$profiles/rank1.json.gz" --idle --quiet
stageline import kineto "$profiles/rank0.json.gz" "$profiles/rank1.json.gz" --out mine.json --program ran.slp --quiet
stageline simulate mine.json --program ran.slp --quiet | grep step
