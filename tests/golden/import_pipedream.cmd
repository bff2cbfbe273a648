stageline import small.graph.txt --batch 32
