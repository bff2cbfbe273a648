# Sequences of unequal lengths: documents that are packed, the order of micro-batches, and programs that keep them.
cd "$OUT"
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
llm="model:llama3-8b@h100,layers=8,seq=8192 --cluster h100x8 --devices 4"
lengths=8192,1024+3072+4096,2048,6144,512,4096
try simulate $llm --schedule 1f1b --microbatches 6 --lengths $lengths --quiet
try compare $llm --schedule 1f1b,zb_h1 --microbatches 6 --lengths $lengths --lengths-order balanced --quiet
try program $llm --schedule 1f1b --microbatches 6 --lengths $lengths --lengths-order snake --out kept.slp --quiet
grep lengths kept.slp
try simulate $llm --program kept.slp --quiet
try program $llm --schedule seq1f1b:sequence_chunks=2,slices=5120-3072 --microbatches 6 --out cut.slp --quiet
grep -A1 sequence_chunks cut.slp
try simulate $llm --program cut.slp --quiet
try plan $llm --lengths $lengths --samples 6 --dp 1 --tp 1 --cp 1 --schedule 1f1b,zb_h1 --recompute none --quiet
# What cannot be.
try simulate $llm --lengths packed:8192:4096,4096,4096 --microbatches 6
try simulate $llm --lengths packed:2048:4096 --microbatches 6
try simulate $llm --program kept.slp --lengths $lengths
try simulate $llm --lengths-order sorted --lengths $lengths --microbatches 6
try simulate uniform:layers=8 --program cut.slp
try plan $llm --lengths 'lognormal(4096,1)' --samples 6
try plan $llm --lengths $lengths --samples 7
