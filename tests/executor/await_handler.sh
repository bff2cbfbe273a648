# For the scripts beside this one, which interrupt what they have started in the background. There
# SIGINT is ignored, and a program leaves it so: they start it by env --default-signal=INT.

# Waits until a process runs the program and has a handler for SIGINT, or waits for that signal
# itself; or until it has ended.
await_handler() {  # process, program
  local masks caught waited
  while masks=$(sed -n 's/^Sig\(Cgt\|Blk\):\t//p' "/proc/$1/status" 2>/dev/null) && [ -n "$masks" ]; do
    if grep -q '^State:.*zombie' "/proc/$1/status"; then return; fi
    { read -r waited && read -r caught; } <<<"$masks"
    if [ "/proc/$1/exe" -ef "$2" ] && (((16#$caught | 16#$waited) >> 1 & 1)); then return; fi
    sleep 0.02
  done
}
