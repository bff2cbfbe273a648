"""Writes what the machine is: facts.py FILE.json. What cannot be asked is left out and named."""
import json
import os
import platform
import subprocess
import sys

QUESTIONS = {
    "gpu": ("nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit,"
            "pcie.link.gen.max,pcie.link.width.max,mig.mode.current", "--format=csv"),
    "topology": ("nvidia-smi", "topo", "-m"),
    "cpu": ("lscpu",),
    "memory": ("free", "-b"),
}


def torch_facts():
    import torch  # here, for it takes seconds
    facts = {"version": torch.__version__, "cuda": torch.version.cuda}
    if torch.cuda.is_available():
        at = torch.cuda.get_device_properties(0)
        facts |= {name: getattr(at, name) for name in
                  ("name", "total_memory", "multi_processor_count", "L2_cache_size", "major", "minor")
                  if hasattr(at, name)}
        facts["cudnn"] = torch.backends.cudnn.version()
    return facts


def main(file):
    facts = {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()}
    left_out = []
    for name, command in QUESTIONS.items():
        try:
            facts[name] = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                         text=True, timeout=10).stdout.strip().splitlines()
        except (OSError, subprocess.SubprocessError) as error:
            left_out.append(f"{name}: {error}")
    try:
        facts["torch"] = torch_facts()
    except (ImportError, RuntimeError) as error:
        left_out.append(f"torch: {error}")
    facts["left_out"] = left_out
    with open(file, "w", encoding="utf-8") as out:
        json.dump(facts, out, indent=1)
        out.write("\n")
    print(json.dumps(facts.get("torch", {})))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FILE.json")
    main(sys.argv[1])
