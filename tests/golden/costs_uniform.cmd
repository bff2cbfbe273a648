# One trace: all layers, the most expensive ones, by kind, none that takes any time, and as JSON.
stageline costs uniform:layers=3,forward=2ms,update=500us
echo; stageline costs resnet50-h100 --top 4
echo; stageline costs resnet50-h100 --by kind --quiet
echo; stageline costs uniform:layers=5000,forward=2us | tail -5
echo; stageline costs uniform:layers=2,forward=0,input_grad=0,weight_grad=0 --quiet
echo; stageline costs uniform:layers=1,batch=2 --microbatch-size 6 --json -
