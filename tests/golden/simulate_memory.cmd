# Memory by category: the peak in words, in the JSON, in a picture and as counters.
problem='uniform:layers=4,forward=1ms,input_grad=1ms,weight_grad=1ms --devices 2 --microbatches 4'
peaks() { grep ' peaks at '; }
stageline simulate $problem --schedule 1f1b --quiet | peaks
stageline simulate $problem --schedule zb_h1 --link 1GB/s,5us --full --quiet | peaks
stageline simulate $problem --schedule gpipe:recompute=always --full --quiet | peaks
stageline simulate $problem --schedule pipefb --full --quiet | peaks
stageline simulate $problem --schedule 1f1b --memory 64MB --json - | grep -A 20 '"peak_op"' | head -23
echo '$ --panels categories'
stageline draw $problem --schedule zb_h1 --panels categories --svg - |
  grep -oE '>([0-9][FBIW][0-9]|0F[0-9] runs|1F[0-9] runs|Memory by category|stash for [IW]|weights|gradients of weights|[0-9]+ MB)<' | sort | uniq -c
stageline draw $problem --schedule zb_h1 --chrome - | grep '"name":"stash"' | head -3
