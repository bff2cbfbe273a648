# The kernels of a language model's layers, under degrees, as text and JSON; what has none.
stageline costs model:llama3-8b@h100,layers=2 --tp 2 --sequence-parallel --kernels --quiet
stageline costs model:mixtral-8x7b@b200,layers=2 --ep 8 --kernels --quiet | head -40
stageline costs model:gpt2@h100,layers=2 --kernels --json - | head -60
stageline costs model:llama3-70b@h100 --tp 8 --sequence-parallel --by kind --quiet
stageline costs resnet50-cpu --kernels
stageline costs resnet50-cpu --tp 2
stageline costs model:gpt2@h100 --kernels --against model:gpt2@a100
