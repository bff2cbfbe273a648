stageline simulate uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms --schedule zb_auto:limit=2p --devices 4 --microbatches 8
stageline simulate uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms --schedule v_half --devices 4 --microbatches 8 --quiet
stageline program uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms --schedule zb_v --devices 2 --microbatches 3
stageline compare uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms --schedule 1f1b,zb_h1,zb_h2,zb_auto,zb_v,v_half,v_min,list:limit=p --devices 4 --microbatches 16 --quiet
stageline simulate uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms --schedule zb_auto:limit=3p --devices 4
stageline simulate uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms --schedule list:placement=v,limit=1 --devices 4
stageline simulate uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms --schedule zb_auto:limit=memory --memory 9MB --devices 4
