# Llama 3 8B on one machine of eight H100: step, tokens and MFU by schedule.
stageline compare model:llama3-8b@h100 --cluster h100x8 --tp 2 --pp 4 --sequence-parallel --microbatches 32 \
  --precision bf16 --schedule 1f1b,interleaved_1f1b,zb_h1 --columns schedule,step,tokens/s/GPU,MFU,'peak memory',fits --quiet
