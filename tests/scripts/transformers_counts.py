#!/usr/bin/env python3
"""Counts the parameters of tests/cost_models/transformers/families.json by Hugging Face's transformers.

On its meta device, without weights. Exit code 1 if one differs; 77 (skipped) where torch or
transformers is not installed.

    transformers_counts.py                      the file's own numbers
    transformers_counts.py --change STAGELINE   each configuration with one key left out, null,
                                                doubled, one more, or the other of true and false:
                                                counted by both, which must agree unless one of the
                                                two refuses it
"""

import contextlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile

FILE = pathlib.Path(__file__).parents[1] / "cost_models/transformers/families.json"
CORRECTIONS = ("correction_bias", "expert_bias")  # buffers, which published files hold as weights
MASKED = (
    "bert",
    "camembert",
    "ernie",
    "modernbert",
    "roberta",
    "roberta-prelayernorm",
    "xlm-roberta",
)  # counted with the head of masked tokens
# Its class allocates the first products of experts that do nothing, which no file holds.
WITHOUT_ZERO_EXPERTS = "longcat_flash"
WITHOUT_CORRECTION = "minimax_m2"  # where the file does not say use_routing_bias


def counted(config):
    """All parameters, each once, and the router's corrections."""
    import torch
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM, AutoModelForMaskedLM

    keys = {key: value for key, value in config.items() if key != "model_type"}
    ids = {"pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}
    kind = AutoModelForMaskedLM if config["model_type"] in MASKED else AutoModelForCausalLM
    with torch.device("meta"):
        model = kind.from_config(CONFIG_MAPPING[config["model_type"]](**keys, **ids))
    model.tie_weights()
    total = sum(weights.numel() for weights in {id(w): w for w in model.parameters()}.values())
    if config["model_type"] == WITHOUT_ZERO_EXPERTS:
        for name, weights in model.named_parameters():
            if name.endswith("experts.gate_up_proj"):
                total -= model.config.zero_expert_num * weights[0].numel()
    if config["model_type"] != WITHOUT_CORRECTION:
        total += sum(b.numel() for name, b in model.named_buffers() if name.endswith(CORRECTIONS))
    return total


def changes(config):
    """Configurations that differ from that one in one key."""
    for key, value in config.items():
        if key == "model_type":
            continue
        yield f"without {key}", {k: v for k, v in config.items() if k != key}
        yield f"{key} null", config | {key: None}
        if isinstance(value, bool):
            yield f"{key} {not value}", config | {key: not value}
        elif isinstance(value, int):
            for other in (2 * value, value + 1):
                yield f"{key} {other}", config | {key: other}


def stated(stageline, config):
    """The parameters that the command counts; None where it refuses the configuration."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(json.dumps(config))
        file.flush()
        run = subprocess.run(
            [stageline, "costs", f"model:{file.name}@h100"], capture_output=True, text=True, check=False
        )
    found = re.search(r"model of (\d+) parameters", run.stdout + run.stderr)
    if found is None and run.returncode != 2:
        raise RuntimeError(f"exit code {run.returncode} for {json.dumps(config)}: {run.stderr}")
    return int(found[1]) if found else None


def counted_or_none(config):
    """None where transformers cannot make the model: any exception of any of its classes."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            return counted(config)
    except Exception:
        return None


def compare_changes(stageline, rows):
    """Prints the changes that the two count differently. Returns how many."""
    wrong = same = refused = 0
    for row in rows:
        for change, config in changes(row["config"]):
            here = stated(stageline, config)
            there = counted_or_none(config) if here is not None else None
            if here is None or there is None:
                refused += 1
            elif here == there:
                same += 1
            else:
                wrong += 1
                print(f"{config['model_type']}, {change}: transformers counts {there}, stageline {here}")
    print(f"{same} changes counted alike, {wrong} not, {refused} refused by one of the two")
    return wrong


def main():
    try:
        import transformers
    except ImportError:
        print("skipped: transformers is not installed")
        return 77
    transformers.logging.set_verbosity_error()
    if sys.argv[1:2] == ["--change"]:
        return 1 if compare_changes(sys.argv[2], json.loads(FILE.read_text())) else 0
    wrong = 0
    rows = json.loads(FILE.read_text())
    for row in rows:
        count = counted(row["config"])
        if count == row["parameters"]:
            continue
        wrong += 1
        print(f"{row['config']['model_type']}: transformers counts {count}, the file has {row['parameters']}")
    print(f"{len(rows)} model types, {wrong} wrong, transformers {transformers.__version__}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
