#!/usr/bin/env python3
"""Counts the parameters of tests/cost_models/transformers/families.json by Hugging Face's transformers.

On its meta device, without weights. Exit code 1 if one differs; 77 (skipped) where torch or
transformers is not installed.
"""

import json
import pathlib
import sys

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
    if config["model_type"] != WITHOUT_CORRECTION:
        total += sum(b.numel() for name, b in model.named_buffers() if name.endswith(CORRECTIONS))
    return total


def main():
    try:
        import transformers
    except ImportError:
        print("skipped: transformers is not installed")
        return 77
    transformers.logging.set_verbosity_error()
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
