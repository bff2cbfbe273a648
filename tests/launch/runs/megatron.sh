#!/bin/bash
#SBATCH --nodes=4
# A made-up run: a GPT of 24 blocks on 4 machines.
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-4}
TP=4
PP=2
LAYERS=$((PP * 12))
SEQ=${SEQ:-"4096"}

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NNODES
    --master_addr localhost
)
MODEL_ARGS="--num-layers $LAYERS --hidden-size 2048 \
  --num-attention-heads 16 --swiglu --ffn-hidden-size 5632"
MODEL_ARGS+=" --group-query-attention --num-query-groups 8"
TRAINING_ARGS=(
    --micro-batch-size 2   # sequences
    --global-batch-size 64
    --seq-length ${SEQ}
    --max-position-embeddings $SEQ
    --normalization RMSNorm
    --position-embedding-type rope
    --untie-embeddings-and-output-weights
    --disable-bias-linear
    --attention-dropout 0.0
    --hidden-dropout 0.0
    --bf16
    --lr 3.0e-4 --min-lr 3.0e-5
    --train-iters 1000
)
torchrun "${DISTRIBUTED_ARGS[@]}" pretrain_gpt.py \
    $MODEL_ARGS \
    ${TRAINING_ARGS[@]} \
    --tensor-model-parallel-size ${TP} \
    --pipeline-model-parallel-size "$PP" \
    --num-layers-per-virtual-pipeline-stage 6 \
    --sequence-parallel --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \
    --vocab-size 32000 --data-path $DATA --some-fork-flag 3 2>&1 | tee log.txt
