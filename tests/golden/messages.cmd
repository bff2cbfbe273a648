# Messages that block. Each command stands before what it says.
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
trace=uniform:layers=4,forward=1ms,input_grad=1ms,weight_grad=1ms,output=1MB
try program $trace --schedule 1f1b --devices 4 --microbatches 4 --messages batched
for messages in async batched blocking; do
  try simulate $trace --schedule 1f1b --devices 4 --microbatches 8 --link 2GB/s,50us --messages $messages --quiet
done
try draw $trace --schedule gpipe --devices 4 --microbatches 8 --link 2GB/s --messages blocking
try compare $trace --schedule 1f1b,pipedream,layerpipe --devices 3 --link 2GB/s --messages batched
try simulate $trace --messages blocked
