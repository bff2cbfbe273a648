# Published rows: what cannot be priced or read says why, and a row's question can be asked again.
cd "$OUT"
try() {
  echo "\$ stageline $*"
  stageline "$@"
  echo "→ exit $?"
}
cat > points.csv <<'END'
id,source,model,layers,hidden,heads,seq,hardware,gpus,framework,precision,pp,experts,topk,micro_batch,global_batch,schedule,step_time_s
1,mine,my model,32,4096,32,2048,A100-80GB SXM,8,Megatron-LM,bf16,8,,,1,32,zbv,2.5
2,mine,my model,32,4096,32,2048,A100-80GB SXM,8,Megatron-LM,bf16,8,8,2,1,32,1f1b,5
3,mine,my model,32,4096,32,2048,A100-80GB SXM,8,Megatron-LM,bf16,8,8,,1,32,1f1b,5
4,mine,my model,32,4096,32,2048,A100-80GB SXM,8,Megatron-LM,garbage,8,,,1,32,1f1b,5
5,mine,my model,32,4096,32,long,A100-80GB SXM,8,Megatron-LM,bf16,8,,,1,32,1f1b,5
6,mine,my model
END
try published points.csv --rows
stageline published points.csv --json points.json > report.txt
grep predicted_step_s points.json
sed -n 's/^ *"command": "\(.*\)",\{0,1\}$/\1/p' points.json > commands
cat commands
while read -r command; do eval "$command --json -" | grep '"step_time_s"'; done < commands
head -n 1 points.csv > unread.csv
tail -n 1 points.csv >> unread.csv
try published unread.csv
