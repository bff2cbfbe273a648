# An encoder before a language model, on ranks of its own tensor degree.
cd "$OUT"
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
vit=model:transformer@h100,layers=24,hidden=1024,heads=16,seq=576,vocab=1024,batch=8
llm="model:llama3-8b@h100 --cluster h100x8*2 --tp 4 --microbatches 8"
try simulate $llm --encoder $vit --encoder-tp 1 --devices 9
try compare $llm --encoder $vit --encoder-tp 2 --devices 10 --schedule 1f1b,zb_h1,interleaved_1f1b,seq1f1b --quiet
try simulate $llm --encoder $vit --encoder-tp 1 --encoder-pp 4 --devices 16 --json - | grep -A12 '"degrees"'
# A frozen one.
try simulate $llm --encoder $vit --encoder-tp 1 --devices 9 --frozen-encoder
try simulate $llm --encoder $vit --encoder-tp 1 --devices 9 --frozen-encoder --recompute full
# How many devices for the encoder, of sixteen in all.
try sweep $llm --devices 16 --encoder $vit --schedule 1f1b --axis encoder_pp=1,2,4 --axis encoder_tp=1,2,4 --out encoders --quiet --merge
gunzip -c encoders/table.csv.gz | cut -d, -f1-9 | cut -c1-160
# The same degrees for both are one model.
try simulate $llm --encoder $vit --devices 12 --quiet
# What is not modelled.
try simulate $llm --encoder-tp 2 --pp 3
try simulate $llm --encoder model:resnet50@h100,batch=8 --devices 12
try simulate $llm --encoder $vit --encoder-tp 1 --pp 1
try simulate $llm --encoder $vit --encoder-tp 1 --devices 16
try simulate $llm --encoder $vit --encoder-tp 1 --pp 3 --devices 16
try simulate $llm --encoder $vit --encoder-tp 1 --pp 7
try simulate $llm --encoder $vit --encoder-tp 1 --pp 3 --cp 2
try simulate $llm --encoder $vit --encoder-tp 1 --pp 3 --order pp-tp-cp-dp
try simulate $llm --encoder $vit --encoder-tp 8 --pp 3 --sequence-parallel
try simulate $llm --encoder $vit --encoder-tp 1 --devices 9 --partition 0-10,11-40,41-
try simulate $llm --encoder $vit --encoder-tp 1 --pp 3 --partition simulated
try simulate $llm --encoder $vit --encoder-tp 1 --devices 9 --schedule zb_v
