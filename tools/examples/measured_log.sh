# Why does a run of Megatron-LM take as long as its log says?
stageline explain --log ../../tests/launch/runs/megatron.log --quiet | grep -E "^measured .*predicted|^→"
