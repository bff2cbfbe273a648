# The memory of a run as PyTorch's snapshot: what is allocated at its peak is what the JSON says, no two
# allocations share an address, and what remains is in the segments. What is refused.
small="uniform:layers=4,forward=1ms,weights=3MB,stash=7MB,output=2MB --devices 2 --microbatches 4 --schedule 1f1b"
stageline draw $small --memory-snapshot "$OUT/memory.pickle" | sed "s|$OUT|OUT|"
stageline draw $small --json "$OUT/run.json" --quiet > /dev/null
/usr/bin/python3 - "$OUT" <<'PYTHON'
import json, pickle, sys
folder = sys.argv[1]
snapshot = pickle.load(open(folder + "/memory.pickle", "rb"))
devices = json.load(open(folder + "/run.json"))["per_device"]
for device, trace, segment in zip(devices, snapshot["device_traces"], snapshot["segments"]):
    held, peak = {}, 0
    for event in trace:
        at, size = event["addr"], event["size"]
        if event["action"] == "alloc":
            assert all(at + size <= other or other + held[other] <= at for other in held)
            held[at] = size
        elif event["action"] == "free_completed":
            assert held.pop(at) == size
        peak = max(peak, sum(held.values()))
    active = {block["address"]: block["size"] for block in segment["blocks"]
              if block["state"] == "active_allocated"}
    print(peak == device["peak_bytes"], active == held, len(trace) > 8,
          sum(block["size"] for block in segment["blocks"]) == segment["total_size"])
print(snapshot["device_traces"][1][-1]["frames"])
PYTHON
stageline draw $small --memory-snapshot - --json -
stageline draw resnet50-cpu --schedule gpipe,1f1b --devices 2 --memory-snapshot "$OUT/a"
