"""What is measured on a machine with a GPU: pieces, in the order of their worth.

A command is a list of words. Put into them are {tools} (the folder of the tools), {tests} (of the test programs), {out}
(the piece's own folder), {before} (that of the piece `after`), {left} (the whole seconds that its clock leaves it),
{jobs} (the cores, four at most), {python} and {here} (this folder)."""
import math
from typing import NamedTuple, Optional, Tuple


class Piece(NamedTuple):
    name: str
    kind: str                    # pieces of a kind take as many times their estimate as the last one of it did
    seconds: float               # estimated on an H100, with the start of the program
    commands: Tuple[Tuple[str, ...], ...]
    after: str = ""              # reads that piece's files, and waits for it
    singly: Tuple["Piece", ...] = ()  # take its place where it fails
    goes_on: Optional[str] = None  # a file: what it holds when the time is over is kept, and another call goes on
    most: float = math.inf       # seconds that one call gives it


class Place(NamedTuple):
    """What a piece runs on, and models whose ops are long enough there: on a GPU far longer than their launch."""
    on: str            # cuda or cpu
    parts: str         # of stageline-exec's --devices, without the number
    model: str         # of the validations
    batch: int
    rounds: int
    offloaded: str     # of the copies to the host
    traces: tuple      # (name, model, sizes of a micro-batch, estimated seconds)
    profile: Tuple[str, ...]
    share: float       # of the seconds that a piece is estimated to take
    small: bool = True  # for a look at names, paths and flags; else for its numbers


CUDA = Place(
    "cuda", "cuda:", "gpt,layers=8,hidden=1024,heads=16,seq=256,vocab=8192", 4, 4,
    "gpt,layers=4,hidden=1024,heads=16,seq=512,vocab=8192",
    (("resnet50", "resnet50", "32,64", 24), ("vgg16", "vgg16", "32", 20), ("gpt", "gpt", "4,8", 30),
     ("block1024", "gpt,layers=2,hidden=1024,heads=16,seq=1024,vocab=1024", "8", 12),
     ("block2048", "gpt,layers=2,hidden=2048,heads=32,seq=1024,vocab=1024", "4", 14),
     ("block4096", "gpt,layers=2,hidden=4096,heads=64,seq=1024,vocab=1024", "2", 18)),
    ("--dtype", "tf32", "--rounds", "8", "--seconds", "8", "--bound", "5"), 1.0, small=False)

# The same commands, small: to see that names, paths and flags are right.
CPU = Place(
    "cpu", "cpu:", "gpt,layers=2,hidden=32,heads=2,seq=8,vocab=50", 2, 1,
    "gpt,layers=2,hidden=32,heads=2,seq=8,vocab=50",
    (("lenet5", "lenet5", "4", 2), ("gpt", "gpt,layers=1,hidden=32,heads=2,seq=8,vocab=50", "2", 2)),
    ("--dtype", "fp32", "--rounds", "4", "--seconds", "0.2", "--bound", "1000"), 0.1)

# On a GPU or a stand-in for one: the devices, parts and flags of CUDA, as many layers, and little work.
SMALL_GPT = "gpt,layers=8,hidden=32,heads=2,seq=8,vocab=50"
CUDA_SMALL = CUDA._replace(
    model=SMALL_GPT, batch=2, rounds=1, offloaded="gpt,layers=4,hidden=32,heads=2,seq=8,vocab=50", traces=CPU.traces,
    profile=("--dtype", "tf32", "--rounds", "4", "--seconds", "0.2", "--bound", "1000"), share=0.1, small=True)

PLACES = {"cuda": CUDA, "cuda-small": CUDA_SMALL, "cpu": CPU}

# Each on two devices. Small groups: a start costs more than a schedule, and a group that fails is run one by one.
SCHEDULES = (("1f1b", "gpipe", "zb_h1", "zb_v", "pipedream"),
             ("stale_weights:mapping=paired", "layerpipe", "pipefb", "chimera", "dualpipe_v"))
HOST_LINK = "20GB/s,20us"
COPIES = ("full", "half", "blocking")


def profile(place, name, model, batches, seconds):
    return Piece(f"trace-{name}", "trace", seconds,
                 (("{tools}/stageline-profile", model, "--device", place.on, "--batch", batches, *place.profile,
                   "--out", "{out}/" + name + ".json"),))


def validation(place, name, parts, schedules, seconds):
    """Predicted and measured: its own clock lets each program run once, then as often as there is time."""
    words = ["{tools}/stageline-validate", "--devices", f"{place.parts}{parts}", "--model",
             f"{place.model}@{place.batch}", "--rounds", str(place.rounds), "--seconds", "{left}"]
    for schedule in schedules:
        words += ["--schedule", schedule]
    if any(schedule.startswith("pipefb") for schedule in schedules):
        words += ["--host-link", HOST_LINK]
    singly = tuple(validation(place, f"{name}-{schedule.split(':')[0]}", parts, (schedule,), seconds / 3)
                   for schedule in schedules) if len(schedules) > 1 else ()
    return Piece(name, "validation", seconds, ((*words, "--out", "{out}/evidence.json.gz"),), singly=singly)


def offload(place):
    """Stashes by way of the host: one part does forwards, the other backwards, and a copy takes what it takes."""
    sms = ("--sms", "64") if place.on == "cuda" else ()
    yield Piece("offload-trace", "trace", 15,
                (("{tools}/stageline-profile", place.offloaded, "--device", place.on, *sms, "--batch", str(place.batch),
                  "--rounds", "4", "--seconds", "0.2" if place.small else "6", "--bound", "1000", "--out",
                  "{out}/trace.json"),))
    for mode in COPIES:
        yield Piece(f"offload-{mode}", "offload", 8,
                    (("{tools}/stageline-exec", "{before}/trace.json", "--model", place.offloaded, "--schedule",
                      f"pipefb:nodes=1-1,transfer={mode}", "--devices", f"{place.parts}2", "--microbatches", "12",
                      "--runs", "3", "--json", "{out}/run.json"),), after="offload-trace")


def tests(name, program, cases, seconds):
    return Piece(name, "tests", seconds, (("{tests}/" + program, *cases),))


def first(place):
    """Facts, the tests of a GPU, predicted and measured, traces, copies to the host."""
    yield Piece("facts", "facts", 8, (("{python}", "{here}/facts.py", "{out}/facts.json"),))
    # A stand-in has neither the speed of parts nor kernels of its own; a profile is a piece below.
    of_kernels = ("-tce=*as much slower*,*autograd*,*profiled*",) if place.small else ()
    yield tests("tests-accelerator", "test_executor", ("-tc=*GPU*,*accelerator*", *of_kernels), 40)
    for number, schedules in enumerate(SCHEDULES, 1):
        yield validation(place, f"parts2-{number}", 2, schedules, 50)
    for trace in place.traces:
        yield profile(place, *trace)
    yield from offload(place)


def second(place):
    """More parts, the host's cores as lanes, all tests, and one net of the staleness study at full width."""
    for parts in (4, 8) if place.on == "cuda" else (1,):
        yield validation(place, f"parts{parts}", parts, SCHEDULES[0] if parts > 1 else ("1f1b",), 60)
    yield tests("tests-executor", "test_executor", ("-tc=*messages*",) if place.small else (), 120)
    yield tests("tests-train", "test_train", ("-tc=*version*",) if place.small else (), 60)
    for cores in (2,) if place.small else (2, 4, 8):
        yield validation(CPU if place.small else CPU._replace(model="resnet20", batch=16, rounds=3),
                         f"cores{cores}", cores, SCHEDULES[0], 60)
    net, most = ("lenet5", 6) if place.small else ("resnet20-textures", 300)
    yield Piece("staleness", "study", 200,
                (("{tools}/stageline-study", "staleness", "--on", place.on, "--jobs", "{jobs}", "--out", "{out}",
                  "--only", net),), goes_on="staleness.json.gz", most=most)


def kernels(place):
    small = ("--small",) if place.small else ()
    yield Piece("kernels", "kernels", 20,
                (("{python}", "{here}/kernels.py", "--on", place.on, *small, "--seconds", "{left}", "--out",
                  "{out}/kernels.json"),), goes_on="kernels.json")


CALLS = {"first": (first,), "second": (first, second), "kernels": (kernels,)}


def pieces_of(call, on):
    """All pieces of that call, in order: `second` begins with what `first` left."""
    share = PLACES[on].share
    return [piece._replace(seconds=max(1.0, share * piece.seconds),
                           singly=tuple(one._replace(seconds=max(1.0, share * one.seconds)) for one in piece.singly))
            for make in CALLS[call] for piece in make(PLACES[on])]
