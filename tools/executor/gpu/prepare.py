"""Makes what travels to a machine with a GPU: the tools, built against that machine's LibTorch, without symbols."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOOLS = ("stageline-profile", "stageline-exec", "stageline-validate", "stageline-train", "stageline-study")
TESTS = ("test_executor", "test_train")
MOST = 64 << 20  # bytes
MARK = "prepared.json"


class Failure(Exception):
    """What could not be done, in one sentence."""


def sources():
    """The hash of all that the build reads."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--", "meson.build", "meson_options.txt", "sim",
                             "schedulers", "cost_models", "traces", "tools", "tests/executor", "tests/meson.build"],
                            stdout=subprocess.PIPE)
    if listed.returncode != 0:
        raise Failure(f"{ROOT} is no git checkout, so what was built cannot be told from what is there")
    all_of = hashlib.sha256()
    for name in sorted(listed.stdout.split(b"\0")):
        path = ROOT / os.fsdecode(name)
        if name and path.is_file() and path.suffix not in (".md", ".svg") and b"/gpu/" not in name:
            all_of.update(name + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return all_of.hexdigest()


def run(words, log):
    """One step; its output goes to the log, whose end is shown where it fails."""
    log.write(f"$ {' '.join(map(str, words))}\n")
    log.flush()
    done = subprocess.run([str(word) for word in words], stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          cwd=ROOT)
    if done.returncode != 0:
        end = pathlib.Path(log.name).read_text(errors="replace").splitlines()[-15:]
        raise Failure(f"{words[0]} ended with exit code {done.returncode}; the end of {log.name}:\n  " +
                      "\n  ".join(end))


def libtorch(version, work, log):
    """The torch package of that version, from the index that pip knows."""
    folder = work / f"torch-{version}"
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=work) as scratch:
            run([sys.executable, "-m", "pip", "download", f"torch=={version}", "--no-deps", "--only-binary", ":all:",
                 "-d", scratch], log)
            (wheel,) = pathlib.Path(scratch).glob("torch-*.whl")
            run([sys.executable, "-m", "zipfile", "-e", wheel, folder], log)
        (folder / "whole").touch()
    return folder / "torch"


def build(torch, work, log):
    folder = work / "build"
    if not (folder / "build.ninja").exists():
        run(["meson", "setup", folder, "--buildtype=release", "-Dtorch=wheel", f"-Dtorch_path={torch}",
             "-Dbenchmarks=disabled", "-Dchakra=disabled"], log)
    else:
        run(["meson", "configure", folder, f"-Dtorch_path={torch}"], log)
    run(["ninja", "-C", folder, "executor_tests"], log)
    return folder


def pack(built, into):
    """The tools without their symbols, and the one library that is neither LibTorch's nor any machine's: libz comes
    with Python, libprotobuf does not, so the tools are built without Chakra."""
    for group, names in (("tools/executor", TOOLS), ("tests/executor", TESTS)):
        (into / group).mkdir(parents=True)
        for name in names:
            subprocess.run(["strip", "-o", into / group / name, built / group / name], check=True)
    needed = subprocess.run(["ldd", built / "tools/executor" / TOOLS[0]], check=True, stdout=subprocess.PIPE, text=True)
    library = re.search(r"libfmt\S* => (\S+)", needed.stdout)
    if library:
        shutil.copy(library[1], into)


def prepare(folder, version, tell):
    """Makes `folder` from nothing, or says that it is there already."""
    wanted = {"sources": sources(), "torch": version}
    mark = folder / MARK
    if mark.exists() and json.loads(mark.read_text()) == wanted:
        tell(f"{folder} is there: of these sources and LibTorch {version}")
        return
    if folder.exists() and not mark.exists() and any(folder.iterdir()):
        raise Failure(f"{folder} holds something that --prepare did not make; name another folder")
    for tool in ("meson", "ninja", "strip"):
        if shutil.which(tool) is None:
            raise Failure(f"{tool} is missing: tools/setup tests installs it")
    work = ROOT / "build-gpu"
    work.mkdir(exist_ok=True)
    with open(work / "log.txt", "w", encoding="utf-8") as log:
        tell(f"LibTorch {version} (some 2 GB once) ...")
        torch = libtorch(version, work, log)
        tell("building: some ten minutes on two cores ...")
        built = build(torch, work, log)
    made = pathlib.Path(tempfile.mkdtemp(dir=work))
    try:
        pack(built, made)
        size = sum(file.stat().st_size for file in made.rglob("*") if file.is_file())
        if size > MOST:
            raise Failure(f"{size / 2**20:.0f} MiB would have to travel, and {MOST >> 20} MiB may")
        (made / MARK).write_text(json.dumps(wanted) + "\n")
        made.chmod(0o755)
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    tell(f"{folder}: {size / 2**20:.1f} MiB, of LibTorch {version}")
