# A language model: tokens/s, MFU, GPU-hours and dollars.
block() {
  printf '    {"name": "%s", "kind": "%s", "forward_us": %s, "input_grad_us": %s, "weight_grad_us": %s, "selective_forward_us": %s,\n' "$1" "$2" "$3" "$3" "$3" "$4"
  printf '     "weights_bytes": 40000000, "output_bytes": 8388608, "stash_input_grad_bytes": 0, "stash_weight_grad_bytes": 142606336, "selective_stash_bytes": 41943040,\n'
  printf '     "parameters": 20000000, "forward_flops": 343597383680, "backward_flops": 687194767360, "selective_flops": 68719476736}'
}
{
  printf '{"format": "stageline-trace 1", "name": "tiny", "sample": "sequence", "tokens": 2048, "parameters": 160000000, "peak_flops": 312e12, "batch": 2,\n'
  printf ' "provenance": {"origin": "synthetic"}, "input_bytes": 16384, "layers": [\n'
  for number in 0 1 2 3 4 5 6; do block "block.$number" block 1500 300; echo ","; done
  block block.7 block 1500 300
  printf ']}\n'
} > "$OUT/tiny.json"
cd "$OUT"
problem='tiny.json --devices 4 --microbatches 16 --link 100GB/s,5us'
stageline simulate $problem --schedule 1f1b --recompute selective --tokens 300B --price 2.5
stageline compare $problem --tokens 300B
stageline compare $problem --schedule 1f1b,zb_h1 --quiet --columns mfu,tokens/s/gpu,gpu-hours
stageline compare $problem --schedule 1f1b,zb_h1 --quiet --full
COLUMNS=60 stageline compare $problem --schedule 1f1b,zb_h1 --quiet --tokens 300B
stageline simulate $problem --tokens 300B --price 2 --json - | grep -E 'tokens|flops|mfu|hfu|fraction|hours|days|dollars|"[tcedp]p"'
echo '$ errors'
stageline simulate uniform --tokens 1T
stageline simulate tiny.json --tokens many
stageline simulate tiny.json --price 2 | grep -e "^cost" -e "note: cost"
stageline simulate tiny.json --tokens 1T --price 0
