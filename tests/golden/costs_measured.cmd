# A measured trace of two sizes: the check against the whole model, and what compare says of it.
stageline costs measured.json
echo; stageline costs measured.json --microbatch-size 32 --quiet
echo; stageline costs measured.json --microbatch-size 24 | tail -4
echo; stageline costs measured.json --against model:lenet5@cpu-core,batch=16
echo; stageline costs measured.json --json - | awk '/"check"/ { on = 1 } on { print } on && /}/ { exit }'
echo; stageline compare measured.json --devices 2 --schedule gpipe | head -2
