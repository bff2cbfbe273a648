"""Whether every option changes the answer, or is refused, or a note says that it has no effect.

usage: options.py STAGELINE [--sample]

--sample: one comparison in eight, where sanitizers make each call of STAGELINE ten times as slow.

The options are those that the program itself lists: flags by `--help all` of every command, options of
model:… by the sentence that refuses an unknown one, knobs by `stageline list`. One that this file
does not know fails the test: a new option comes with a question in which it changes the answer.

Each flag is asked twice of every command that has it: in a plain question, where it may well have
nothing to act on, and in one of its own, where `simulate` must answer something else. What is
compared is all that the command says: the answer as JSON or text, the files, the exit code.
"""
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

STAGELINE = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(__file__).resolve().parent.parent
PROFILE = str(ROOT / "golden" / "small.graph.txt")
FOLDER = tempfile.TemporaryDirectory()
COUNT = itertools.count()
EVERY = 8 if "--sample" in sys.argv[2:] else 1
faults = []


def file_of(name, text):
    path = os.path.join(FOLDER.name, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def run(*words):
    """Exit code, and all that was said; OUT is a file or a folder that is read back."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        done = subprocess.run([STAGELINE, *(word.replace("OUT", out) for word in words)],
                              cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                              env={**os.environ, "COLUMNS": "0"}, timeout=120)
        said = done.stdout + done.stderr
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.is_file():
                said += path.name.encode() + path.read_bytes()
    return done.returncode, said.decode("utf-8", "replace").replace(folder, "")


# ---- what there is ----

def commands():
    text = run("--help")[1]
    return re.findall(r"^  ([a-z][a-z-]*) ", text[text.index("Subcommands:"):], re.M)


def flags_of(command):
    text = run(*command.split(), "--help", "all")[1]
    return re.findall(r"^  (?:-\w,)?(--[a-z][a-z-]*)", text, re.M)


def model_options(model):
    text = run("costs", f"model:{model}@h100,no_such_option=1")[1]
    return re.search(r"there are ([^)]*)\)", text).group(1).split(", ")


def knobs():
    found, schedule = {}, None
    for line in run("list")[1].split("Other names of schedules")[0].splitlines():
        if re.match(r"  \w", line):
            schedule = line.split()[0]
        elif match := re.match(r" {19}(\w+)=(\S.*?)  \((.*); default (.*)\)$", line):
            found[schedule, match[1]] = (match[2], match[4])
    return found


# ---- questions ----

PLAIN = ["uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms"]
BYTES = ["uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms,output=1MB,stash=1MB,"
         "weights=1MB"]
GPT = ["model:gpt2@h100,seq=256"]
MIXTRAL = ["model:transformer@h100,layers=4,hidden=512,heads=8,seq=256,experts=4,topk=2"]
WIDE = GPT + ["--cluster", "h100x8*2", "--devices", "16", "--tp", "2", "--dp", "4", "--pp", "2"]
BEHIND = GPT + ["--cluster", "h100x8", "--encoder",
                "model:transformer@h100,layers=4,hidden=512,heads=8,seq=256,vocab=1024"]
RACKS = ["model:gpt2@gb200,seq=256", "--cluster", "gb200x72*2", "--devices", "128", "--tp", "2", "--dp", "8", "--pp", "8"]
UNEQUAL = file_of("unequal.json", json.dumps({
    "format": "stageline-cluster 1", "name": "unequal",
    "devices": [{"name": "old", "rate": 0.5}, {"name": "new", "count": 3}],
    "switches": ["switch"],
    "links": [{"from": name, "to": "switch", "bandwidth": "1GB/s", "latency": "1us"}
              for name in ("old*", "new*")]}))
CALIBRATION = file_of("h100.json", json.dumps({
    "format": "stageline-calibration 1", "kind": "h100", "rates": {"gemm": 0.5}}))
PERTURBATION = file_of("perturbation.json", json.dumps({
    "format": "stageline-perturbation 1", "pauses": [{"every": 2, "time_us": 50000}]}))
LOG = file_of("train.log", "".join(
    f" iteration {number}/ 9 | elapsed time per iteration (ms): 91.0 | lm loss: 1.0 |\n" for number in (1, 2, 3)))
JITTER = ["--jitter", "5%", "--scenarios", "16"]

# Of the settings that commands share: a value, and the question in which it changes the answer.
SETTINGS = {
    "--batch": ("64", [PROFILE]),
    "--schedule": ("gpipe:recompute=always", PLAIN),
    "--devices": ("2", PLAIN),
    "--cluster": ("v100x4-pcie", PLAIN),
    "--link": ("1GB/s,5us", PLAIN),
    "--memory": ("16GB", BYTES),
    "--reserve": ("2GB", BYTES + ["--memory", "16GB"]),
    "--host-link": ("1GB/s,5us", BYTES + ["--offload", "all"]),
    "--host-memory": ("1GB", BYTES + ["--offload", "all"]),
    "--pair-overlap": ("0.5", PLAIN + ["--schedule", "dualpipe"]),
    "--microbatches": ("4", PLAIN),
    "--lengths": ("lognormal(100,1)", PLAIN),
    "--lengths-order": ("descending", PLAIN + ["--lengths", "9,7,5,4,3,8,6,2"]),
    "--microbatch-size": ("2", GPT),
    "--calibration": (CALIBRATION, GPT),
    "--software": ("megatron-2021", GPT),
    "--cuda-graphs": ("full", GPT),
    "--cp-comm-type": ("p2p", GPT + ["--cluster", "h100x8", "--devices", "2", "--cp", "2"]),
    "--steps": ("3", PLAIN),
    "--partition": ("0,1-3,4-5,6-7", PLAIN),
    "--weights": ("stash", PLAIN + ["--schedule", "pipedream_2bw"]),
    "--slow": ("gpu1:1.5", PLAIN),
    "--device-order": ("search", PLAIN + ["--cluster", UNEQUAL]),
    "--placement": ("fill", RACKS),
    "--recompute": ("full", PLAIN),
    "--recompute-start": ("late", PLAIN + ["--recompute", "full", "--link", "1GB/s,500us"]),
    "--offload": ("all", BYTES + ["--host-link", "1GB/s,5us"]),
    "--prefetch": ("1", BYTES + ["--host-link", "1GB/s,5us", "--offload", "all"]),
    "--tp": ("2", GPT + ["--cluster", "h100x8"]),
    "--cp": ("2", GPT + ["--cluster", "h100x8"]),
    "--ep": ("2", MIXTRAL + ["--cluster", "h100x8", "--dp", "2"]),
    "--etp": ("1", MIXTRAL + ["--cluster", "h100x8", "--tp", "2", "--dp", "2", "--ep", "2", "--sequence-parallel"]),
    "--dp": ("2", GPT + ["--cluster", "h100x8"]),
    "--pp": ("2", GPT + ["--cluster", "h100x8", "--devices", "2"]),
    "--encoder": ("model:resnet50@h100,batch=4", GPT + ["--cluster", "h100x8", "--devices", "4"]),
    "--encoder-pp": ("2", BEHIND + ["--devices", "6"]),
    "--encoder-tp": ("2", BEHIND + ["--devices", "6"]),
    "--frozen-encoder": (None, BEHIND + ["--devices", "6"]),
    "--zero": ("1", WIDE),
    "--zero-every": ("microbatch", WIDE + ["--zero", "3"]),
    "--shard-group": ("2", WIDE + ["--zero", "3"]),
    "--sequence-parallel": (None, WIDE),
    "--order": ("pp-tp-cp-ep-dp", WIDE),
    "--precision": ("fp32", GPT + ["--cluster", "h100x8"]),
    "--collectives": ("tree", WIDE),
    "--sharing": ("fifo", WIDE),
    "--buckets": ("ddp", WIDE),
    "--all-pipelines": (None, WIDE),
    "--messages": ("blocking", PLAIN + ["--link", "1GB/s,500us"]),
}

# What is uncertain: of commands that take scenarios.
SCENARIOS = {
    "--perturb": (PERTURBATION, PLAIN),
    "--jitter": ("20%", PLAIN),
    "--sometimes-slow": ("gpu1:1.5@0.5", PLAIN),
    "--pause": ("2:50ms", PLAIN),
    "--scenarios": ("32", PLAIN + ["--jitter", "5%"]),
    "--seed": ("2", PLAIN + JITTER),
    "--freeze": (None, BYTES[:1] + JITTER + ["--cluster", "v100x4-pcie",
                                           "--schedule", "chimera"]),
}
PICTURES = {
    "--svg": ("OUT", []),
    "--pdf": ("OUT", []),
    "--png": ("OUT", []),
    "--theme": ("dark", ["--svg", "OUT"]),
    "--width": ("500", ["--svg", "OUT"]),
    "--aspect": ("16:9", ["--svg", "OUT"]),
    "--title": ("Mine", ["--svg", "OUT"]),
    "--plain": (None, ["--svg", "OUT"]),
}
OUTPUT = {"--json": ("OUT", []), "--quiet": (None, [])}
PAGE = {"--html": ("OUT", [])}
# These change how long it takes, and the answer only where a longer search finds more.
SPEED = {"--jobs", "--threads", "--thorough", "--time"}

SETTING_WORDS = ["--devices", "4", "--microbatches", "8"]
MANY = [f"uniform:layers=40", "--devices", "30", "--microbatches", "2"]
FITS_NOT = BYTES + ["--memory", "10MB", "--devices", "4", "--microbatches", "8"]
SAMPLES = ["--samples", "8"]
WHY = PLAIN + SETTING_WORDS + ["--why"]

# By command: what is behind each question, and its own flags with a value and a question, which is
# the plain one where it is a list of flags. Without JSON, what is compared is text.
COMMANDS = {
    "simulate": (SETTING_WORDS, {
        **OUTPUT, **PAGE,
        **{flag: (value, WHY + more) for flag, (value, more) in PICTURES.items()},
        "--program": (file_of("one.slp", run("program", *PLAIN, "--schedule", "gpipe",
                                             *SETTING_WORDS)[1]), [*PLAIN]),
        "--tokens": ("1e9", GPT), "--price": ("3", GPT),
        "--no-changes": (None, FITS_NOT), "--timeline": (None, ["--json", "-"]),
        "--full": (None, MANY), "--why": (None, [])}),
    "compare": (SETTING_WORDS + ["--schedule", "1f1b,gpipe"], {
        **OUTPUT, **PAGE,
        **{flag: (value, PLAIN + ["--devices", "2..3"] + more)
           for flag, (value, more) in PICTURES.items()},
        "--tokens": ("1e9", GPT), "--price": ("3", GPT), "--no-changes": (None, FITS_NOT),
        "--by": ("memory", BYTES), "--within": ("1000%", BYTES), "--why": (None, []),
        "--top": ("1", []), "--columns": ("step", []), "--full": (None, [])}),
    "plan": (["--devices", "4", "--samples", "8", "--schedule", "1f1b,gpipe"], {
        **OUTPUT, **PAGE, **PICTURES,
        "--lengths-order": ("descending", ["--lengths", "9,7,5,4,3,8,6,2"]),
        "--samples": ("4", []), "--tokens-per-step": ("2048", GPT),
        "--fix": ("pp=2", []), "--asynchronous": (None, []), "--objective": ("memory", BYTES),
        "--within": ("1000%", BYTES), "--slower-by": ("any", BYTES), "--budget": ("1us", []),
        "--exhaustive": (None, []), "--tokens": ("1e9", GPT),
        "--price": ("3", GPT), "--top": ("1", []), "--all": (None, []), "--flags": (None, []),
        "--emit": ("megatron", ["model:gpt2@h100"]), "--runs-in": ("deepspeed", ["--schedule", "1f1b"])}),
    "draw": (SETTING_WORDS, {
        **OUTPUT, **PICTURES, **PAGE,
        "--program": (file_of("two.slp", run("program", *PLAIN, "--schedule", "gpipe",
                                             *SETTING_WORDS)[1]), [*PLAIN]),
        "--panels": ("weights", ["--svg", "OUT"]), "--from": ("5ms", []), "--to": ("20ms", []),
        "--numbers": ("from-1", ["--svg", "OUT"]), "--arrows": ("messages", ["--svg", "OUT"]), "--rows": ("gpu1,gpu0=first", ["--svg", "OUT"]),
        "--chrome": ("OUT", []), "--memory-snapshot": ("OUT", BYTES), "--columns": ("60", []), "--full": (None, MANY)}),
    "program": (SETTING_WORDS, {
        **OUTPUT,
        "--program": (file_of("three.slp", run("program", *PLAIN, "--schedule", "gpipe",
                                               *SETTING_WORDS)[1]), [*PLAIN]),
        "--quiet": (None, ["--schedule", "Schedule1F1B"]),
        "--out": ("OUT", []), "--format": ("pytorch", []), "--compute-only": (None, []),
        "--check": (None, [])}),
    "costs": ([], {
        **OUTPUT, "--against": ("resnet50-cpu", ["resnet50-cpu"]),
        "--against-batch": ("32", [PROFILE, "--batch", "64", "--against", PROFILE]),
        "--by": ("kind", ["resnet50-cpu"]), "--top": ("2", ["resnet50-cpu"]), "--kernels": (None, GPT),
        "--tp": ("2", GPT), "--cp": ("2", GPT), "--ep": ("2", MIXTRAL),
        "--etp": ("1", MIXTRAL + ["--tp", "2", "--ep", "2", "--sequence-parallel"]),
        "--sequence-parallel": (None, GPT + ["--tp", "2"])}),
    "whatif": (SETTING_WORDS + JITTER, {
        **OUTPUT, **PAGE, **PICTURES,
        "--mtbf": (["8h", "--checkpoint", "60s"], []),
        "--checkpoint": (["60s", "--mtbf", "8h"], []),
        "--restart": ("5min", ["--mtbf", "8h", "--checkpoint", "60s"]),
        "--checkpoint-interval": ("30min", ["--mtbf", "8h", "--checkpoint", "60s"]),
        "--run": ("30d", ["--mtbf", "8h", "--checkpoint", "60s"]), "--by": ("p50", [])}),
    "sensitivity": (SETTING_WORDS, {
        **OUTPUT, **PAGE, **PICTURES,
        "--program": (file_of("four.slp", run("program", *PLAIN, "--schedule", "gpipe",
                                              *SETTING_WORDS)[1]), [*PLAIN]),
        "--full": (None, MANY)}),
    "explain": (SETTING_WORDS + ["--measured", "90ms"], {
        **OUTPUT, "--measured": ("95ms", []), "--memory-measured": ("1GB", []),
        "--log": (LOG, []), "--launch": ("train.sh", []), "--model": ("gpt2", []), "--kind": ("a100", []),
        "--set": ("a=1", []),
        "--program": (file_of("five.slp", run("program", *PLAIN, "--schedule", "gpipe",
                                              *SETTING_WORDS)[1]), [*PLAIN])}),
    "bound": (SETTING_WORDS, OUTPUT),
    "optimal": (["--devices", "3", "--microbatches", "3"], {
        **OUTPUT, "--limit": ("1", []), "--goal": ("makespan", []), "--placement": ("v", []),
        "--chunks": ("3", ["--placement", "looped"]), "--out": ("OUT", [])}),
    "hybrid": (["--schedule", "stale_weights", "--devices", "3"], {
        **OUTPUT, **PICTURES, "--pipelined-fraction": ("0.25", []),
        "--pipelined-iterations": ("10", []), "--iterations": ("100", [])}),
}
# Commands about files and evidence of their own, which their tests ask. By command, its flags.
ELSEWHERE = {
    "report": set(),  # those of compare
    "sweep": {"--axis", "--draws", "--draw-seed", "--chunk", "--out", "--shard", "--threads",
              "--merge", "--show", "--json", "--quiet"},
    "phase": {"--x", "--y", "--exhaustive", "--threads", "--json", "--quiet", *PICTURES},
    "time-to-accuracy": {"--target", "--trace", "--switch-svg", *PICTURES, *OUTPUT},
    "import": {"--json", "--out", "--quiet"},
    "overlay": {"--measured", "--top", "--step", *PICTURES, *PAGE, *OUTPUT},
    "diff": {"--and", "--trace", *OUTPUT},
    "reproduce": {"--json", "--output", "--only"},
    "replay": {"--json", "--report", "--summary", "--against"},
    "published": {"--source", "--rows", "--markdown", "--json", "--evidence-out", "--validation-out",
                  *PICTURES},
    "calibrate": {"--kernels", "--page", "--kind", "--free", "--out", "--json", "--threads", "--quiet"},
    "staleness": {"--json", "--report"},
    "list": {"--figures", "--json", "--request-schema"},
}

# Options of model:…: a value, and what else is in the question; of a language model, beside
# model:gpt2@h100,seq=256. Those of links and of ranks need a cluster.
TRANSFORMER = "transformer@h100,layers=4,hidden=512,heads=8,seq=256"
EXPERTS = TRANSFORMER + ",experts=4,topk=2"
DISPATCH = TRANSFORMER + ",experts=16,topk=4,dispatch=deepep"
DISPATCHED = ["--cluster", "h100x8*2", "--devices", "16", "--dp", "16", "--ep", "16"]
LANGUAGE = {
    "layers": ("4", "gpt2@h100", []), "hidden": ("1536", "gpt2@h100", []),
    "heads": ("4", "gpt2@h100", []), "kv_heads": ("2", TRANSFORMER, []),
    "head_width": ("128", TRANSFORMER, []), "ffn": ("1024", TRANSFORMER, []),
    "gated": ("yes", TRANSFORMER, []), "vocab": ("1024", TRANSFORMER, []),
    "tied": ("yes", TRANSFORMER, []), "norm": ("layer", TRANSFORMER, []),
    "qkv_bias": ("yes", TRANSFORMER, []), "bias": ("yes", TRANSFORMER, []),
    "positions": ("learned", TRANSFORMER, []), "window": ("64", TRANSFORMER, []),
    "experts": ("4", TRANSFORMER, []), "topk": ("4", TRANSFORMER + ",experts=4", []),
    "expert_ffn": ("256", EXPERTS, []), "shared_ffn": ("256", EXPERTS, []),
    "dense_blocks": ("1", EXPERTS, []), "seq": ("512", TRANSFORMER.replace(",seq=256", ""), []),
    "tp": ("2", TRANSFORMER, ["--cluster", "h100x8", "--devices", "2", "--tp", "2"]),
    "cp": ("2", TRANSFORMER, ["--cluster", "h100x8", "--devices", "2", "--cp", "2"]),
    "ep": ("2", EXPERTS, ["--cluster", "h100x8", "--devices", "2", "--dp", "2", "--ep", "2"]),
    "etp": ("1", EXPERTS, ["--cluster", "h100x8", "--devices", "4", "--tp", "2", "--dp", "2", "--ep", "2",
                           "--sequence-parallel", "--etp", "1"]),
    "sp": ("yes", TRANSFORMER, ["--cluster", "h100x8", "--tp", "2"]),
    "attention": ("plain", TRANSFORMER, []), "fused": ("no", TRANSFORMER, []),
    "dropout": ("yes", TRANSFORMER, []), "alignment": ("yes", TRANSFORMER + ",vocab=1000,ffn=1000", []),
    "graphs": ("full", "gpt2@h100", []), "software": ("megatron-2021", "gpt2@h100", []),
    "expert_floor": ("1ms", EXPERTS + ",dtype=fp8", []),
    "capacity": ("0.5", EXPERTS, []), "expert_padding": ("64", EXPERTS, []),
    "main_gradients": ("bf16", EXPERTS, []), "loss": ("fused", TRANSFORMER, []), "mtp": ("1", TRANSFORMER, []),
    "dispatch": ("deepep", DISPATCH.replace(",dispatch=deepep", ""), DISPATCHED),
    "dispatch_bits": ("8", DISPATCH.replace(",dispatch=deepep", ""), DISPATCHED),
    "expert_groups": ("4", DISPATCH, DISPATCHED), "topk_groups": ("2", DISPATCH + ",expert_groups=4", DISPATCHED),
    "imbalance": ("2", EXPERTS, ["--cluster", "h100x8", "--dp", "2", "--ep", "2"]),
    "tp_overlap": ("0.5", TRANSFORMER, ["--cluster", "h100x8", "--devices", "2", "--tp", "2", "--sequence-parallel"]),
    "cp_exchange": ("p2p", TRANSFORMER, ["--cluster", "h100x8", "--devices", "2", "--cp", "2"]),
    "cp_balance": ("none", "transformer@h100,layers=4,hidden=512,heads=8,seq=32768", ["--cluster", "h100x8", "--devices", "2", "--cp", "2"]),
    "gemm": ("0.2", "gpt2@h100", []), "gemm_8bit": ("0.2", "gpt2@h100,dtype=fp8", []),
    "attention_kernel": ("0.5", "gpt2@h100,attention=fa3", []),
    "gemm_4bit": ("3", "gpt2@b200,dtype=nvfp4", []), "bf16_start": ("2", "gpt2@b200,dtype=nvfp4", []),
    "bf16_end": ("2", "gpt2@b200,dtype=nvfp4", []),
    "gemm_rows": ("2000", "gpt2@h100", []), "gemm_columns": ("1000", "gpt2@h100", []),
    "attention_plain": ("0.1", "gpt2@h100,attention=plain", []),
    "attention_flash": ("0.1", "gpt2@h100", []), "memory": ("0.3", "gpt2@h100", []),
    "kernel": ("1ms", "gpt2@h100", []), "layer_floor": ("9ms", "gpt2@h100", []),
    "step": ("1", "gpt2@h100", []),
    "misaligned": ("2", TRANSFORMER + ",vocab=1000,ffn=1000,alignment=yes", []),
    "nvlink": ("0.5", "gpt2@h100", ["--cluster", "h100x8"]),
    "network": ("0.5", "gpt2@h100", ["--cluster", "h100x8*2", "--devices", "16", "--dp", "8"]),
    "batch": ("2", "gpt2@h100", []), "dtype": ("fp32", "gpt2@h100", []),
    "optimizer": ("sgd", "gpt2@h100", []), "efficiency": ("0.5", "gpt2@h100", []),
    "overhead": ("1ms", "gpt2@h100", []),
}
SHAPE = {
    "layers": ("8", "gpt@h100", []), "hidden": ("1024", "gpt@h100", []),
    "heads": ("8", "gpt@h100", []), "seq": ("256", "gpt@h100", []),
    "vocab": ("1024", "gpt@h100", []), "width": ("4", "resnet20@h100", []),
    "tp": ("2", "gpt@h100,vocab=1024", ["--cluster", "h100x8", "--devices", "2", "--tp", "2"]),
    "cp": ("2", "gpt@h100", ["--cluster", "h100x8", "--devices", "2", "--cp", "2"]),
    "sp": ("yes", "gpt@h100,vocab=1024", ["--cluster", "h100x8", "--tp", "2"]),
    "dropout": ("yes", "gpt@h100", []), "batch": ("2", "resnet20@h100", []),
    "dtype": ("fp32", "resnet20@h100", []), "optimizer": ("sgd", "gpt@h100", []),
    "efficiency": ("0.5", "resnet20@h100", []), "overhead": ("1ms", "resnet20@h100", []),
}

# Knobs whose values are no list, or that need another one; and questions beyond the usual one.
KNOBS = {
    ("stale_weights", "order"): "mapping=paired,order=backward_first",
    ("list", "chunks"): "placement=looped,chunks=3", ("zb_auto", "chunks"): "placement=looped,chunks=3",
    ("cyclic", "chunks"): "placement=looped,chunks=3",
    ("list", "limit"): "limit=1", ("zb_auto", "limit"): "limit=2p", ("cyclic", "limit"): "limit=2",
    ("interleaved_1f1b", "group"): "group=8", ("interleaved_zb", "group"): "group=2",
    ("hanayo", "waves"): "waves=2", ("chimera", "pipelines"): "pipelines=4",
    ("pipedream", "replicas"): "replicas=3-1", ("pipefb", "nodes"): "nodes=2-2",
    ("seq1f1b", "slices"): "slices=balanced", ("svpp", "slices"): "slices=balanced",
}
# Those of language models alone.
KNOB_TRACES = {("1f1b", "vocabulary"): "model:gpt2@h100", ("seq1f1b", "slices"): "model:gpt2@h100",
               ("svpp", "slices"): "model:gpt2@h100"}
# Those that are refused on the devices of the usual question.
KNOB_DEVICES = {("1f1b", "overlap"): "1"}


# ---- asking ----

def fail(sentence):
    faults.append(sentence)


def answer(words):
    """What the command says, but the degrees, which repeat the question."""
    code, said = run(*words)
    if words[-2:] == ("--json", "-") or words[-2:] == ["--json", "-"]:
        begin = said.find("{") if not said.startswith("[") else 0
        try:
            value = json.loads(said)
        except ValueError:
            return code, said
        return code, without(value, {"degrees"})
    return code, said


def without(value, keys):
    if isinstance(value, dict):
        return {key: without(one, keys) for key, one in value.items() if key not in keys}
    if isinstance(value, list):
        return [without(one, keys) for one in value]
    return value


class Asked:
    """Answers by their words, each asked once."""

    def __init__(self, pool):
        self.pool, self.answers = pool, {}

    def __call__(self, words):
        key = tuple(words)
        if key not in self.answers:
            self.answers[key] = self.pool.submit(answer, key)
        return self.answers[key]


def flag_words(flag, value):
    more = [] if value is None else [value] if isinstance(value, str) else value
    return [flag, *more]


def question(command, base, more, flag="", value=None, json_too=True):
    """`base` begins with a trace, or is all behind it; a flag that is given is not given twice."""
    words = list(base) if base and not base[0].startswith("-") else PLAIN + list(base)
    asked = [command, words[0]]
    given = words[1:]
    repeated = given + ([flag] if flag else [])
    rest = []
    at = 0
    while at < len(more):
        length = 2 if at + 1 < len(more) and not more[at + 1].startswith("-") else 1
        if more[at] not in repeated:
            rest += more[at:at + length]
        at += length
    asked += given + rest
    if flag:
        asked += flag_words(flag, value)
    if json_too and "--json" not in asked:
        asked += ["--json", "-"]
    return asked


def compare(asked, name, with_it, without_it, must_change=False):
    """Later: whether the two answers differ; `must_change`: beside the notes, and without refusal."""
    if next(COUNT) % EVERY != 0:
        return lambda: None
    one, other = asked(with_it), asked(without_it)

    def look():
        code, said = one.result()
        code_without, said_without = other.result()
        shown = " ".join(with_it)
        if must_change:
            if code not in (0, 1) or code_without not in (0, 1):
                fail(f"{name}: refused: {shown}: {said if code > 1 else said_without}")
            elif without(said, {"notes"}) == without(said_without, {"notes"}):
                fail(f"{name} changes nothing: {shown}")
        elif code_without not in (0, 1):
            fail(f"{name}: refused without it: {' '.join(without_it)}: {said_without}")
        elif (code, said) == (code_without, said_without):
            return shown
        return None

    return look


def main():
    known = set(COMMANDS) | set(ELSEWHERE)
    if set(commands()) != known:
        fail(f"commands: {sorted(set(commands()) ^ known)} are here or there alone")
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        asked = Asked(pool)
        looks, silent = [], []

        def quiet(name, command, base, more, flag, value):
            """The same answer as JSON and as text: the flag is read in silence."""
            as_json = "--json" in all_flags[command] and command != "program"  # of --check alone
            words = [question(command, base, more, *which, as_json) for which in
                     ((flag, value), ("", None))]
            silent.append((f"{name} of {command}", compare(asked, name, *words), words))

        all_flags = {command: flags_of(command) for command in known}
        for command, flags in all_flags.items():
            more, own = COMMANDS.get(command, ([], dict.fromkeys(ELSEWHERE.get(command, ()))))
            if command == "report":
                own = dict.fromkeys(all_flags["compare"])
            for flag in flags:
                if flag in ("--help",) or flag in SPEED:
                    continue
                shared = SETTINGS.get(flag) or SCENARIOS.get(flag)
                if flag not in own and shared is None:
                    fail(f"{command} {flag}: no question in tests/scripts/options.py")
                elif command not in COMMANDS:
                    continue
                elif flag in own:
                    value, base = own[flag]
                    words = [question(command, base, more, *which, False) for which in
                             ((flag, value), ("", None))]
                    silent.append((f"{flag} of {command}",
                                   compare(asked, flag, *words), None))
                else:
                    quiet(flag, command, [], more, flag, shared[0])
                    if command == "simulate":
                        words = [question(command, shared[1], more +
                                          (["--why"] if flag in SCENARIOS else []), *which)
                                 for which in ((flag, shared[0]), ("", None))]
                        looks.append(compare(asked, f"{flag} of simulate", *words, True))
                    elif command in ("compare", "plan"):
                        quiet(flag, command, shared[1], more, flag, shared[0])

        for models, table in (((TRANSFORMER.split("@")[0], "gpt2"), LANGUAGE),
                              (("gpt", "resnet20"), SHAPE)):
            for option in sorted({one for model in models for one in model_options(model)}):
                if option not in table:
                    fail(f"model:…,{option}=: no question in tests/scripts/options.py")
                    continue
                value, model, more = table[option]
                words = ["simulate", f"model:{model}", *more, "--microbatches", "4",
                         "--schedule", "1f1b", "--json", "-"]
                words += [] if "--cluster" in words else ["--devices", "2"]
                with_it = [words[0], f"{words[1]},{option}={value}", *words[2:]]
                # A degree that a flag states, too, is the flag's: there it changes nothing more.
                if option in ("tp", "cp", "ep", "etp"):
                    at = words.index(f"--{option}")
                    with_it = with_it[:at] + with_it[at + 2:]
                    silent.append((f"model:…,{option}=", compare(
                        asked, option, with_it, words[:at] + words[at + 2:]), None))
                    continue
                looks.append(compare(asked, f"model:…,{option}=", with_it, words, True))
                plain = [words[0], words[1], "--devices", "2", "--microbatches", "4", "--json", "-"]
                plain_with = [plain[0], f"{plain[1]},{option}={value}", *plain[2:]]
                silent.append((f"model:…,{option}=", compare(asked, option, plain_with, plain),
                               None))

        for (schedule, knob), (values, fallback) in knobs().items():
            text = KNOBS.get((schedule, knob))
            if text is None and "|" in values:
                text = f"{knob}={next(one for one in values.split('|') if one != fallback)}"
            elif text is None and values == "int":
                text = f"{knob}={3 if fallback != '3' else 2}"
            if text is None:
                fail(f"{schedule}:{knob}=: no question in tests/scripts/options.py")
                continue
            needed = text.rpartition(",")[0]
            trace = KNOB_TRACES.get((schedule, knob), BYTES[0].replace("layers=8", "layers=16"))
            words = [["simulate", trace,
                      "--devices", KNOB_DEVICES.get((schedule, knob), "4"),
                      "--microbatches", "8", "--link", "1GB/s,50us", "--host-link", "4GB/s,5us", "--schedule",
                      f"{schedule}:{one}" if one else schedule, "--json", "-"]
                     for one in (text, needed)]
            looks.append(compare(asked, f"{schedule}:{knob}=", *words, True))
            if needed:
                alone = [[f"{schedule}:{text.rpartition(',')[2]}" if word == words[0][-3] else word
                          for word in words[0]],
                         [schedule if word == words[0][-3] else word for word in words[0]]]
                silent.append((f"{schedule}:{knob}= alone", compare(asked, knob, *alone), None))

        few = ["plan", "uniform:layers=2", "--devices", "2", "--samples", "2", "--json", "-"]
        looks.append(compare(asked, "--fix asynchronous=", [*few, "--fix", "asynchronous=yes"], few,
                             True))

        for look in looks:
            look()
        for name, look, texts in silent:
            if look() is None:
                continue
            if texts is not None:
                texts = [[word for word in words if word not in ("--json", "-")] for words in texts]
                look = compare(asked, name, *texts)
            shown = look()
            if shown is not None:
                fail(f"{name} is read, and neither changes the answer nor is refused or noted: "
                     f"{shown}")
        print(f"{len(asked.answers)} questions")
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    sys.exit(1 if faults else 0)


main()
