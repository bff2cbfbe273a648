# Two traces side by side: other devices, other layers, other batch sizes, updates in one only.
stageline costs model:resnet50@h100 --against model:resnet50@a100 --top 8
echo; stageline costs model:resnet50@h100 --against model:resnet18@cpu-core,batch=8 --by kind
echo; stageline costs uniform:layers=3 --against uniform:layers=2,batch=5,forward=10ms,update=1ms
echo; stageline costs small.graph.txt --against small.graph.txt --quiet
echo; stageline costs uniform:layers=1 --against uniform:layers=1,forward=3ms,weight_grad=0 --json -
