"""Runs pieces by its own clock, and keeps each whole when it is done.

FOLDER/CALL.tar.gz is all that a call writes, made anew behind each piece and put in place at once:
  index.json        {"format": "stageline-gpu-evidence 1", "call", "on", "date", "done", "left_out", "failed",
                    "unfinished"}
  PIECE/…           what a piece wrote, and log.txt: what it said
done: [{"piece", "seconds", "estimated", "commands"}]; failed: [{"piece", "why", "seconds"}], whose logs are there
alone; left_out: [{"piece", "why"}]; unfinished: pieces whose files are there, and with which another call goes on. A
piece that another call has done is not run again."""
import datetime
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

import pieces

FORMAT = "stageline-gpu-evidence 1"
TO_END = 2.5      # seconds that a program asked to end may take (ours end after 0.6), a tenth of the call at most
TO_KEEP = 1.5     # seconds for the last archive, a tenth of the call at most
MOST = 14 << 20   # bytes of one archive
HERE = pathlib.Path(__file__).resolve().parent


def read_archive(path):
    """(index, names of members); raises ValueError for what is no whole archive."""
    try:
        with tarfile.open(path, "r:gz") as tar:
            names = tar.getnames()
            index = json.load(tar.extractfile("index.json"))
    except (OSError, EOFError, tarfile.TarError, KeyError, ValueError) as error:
        raise ValueError(f"{path} is no archive of gpu_evidence: {error}") from error
    if index.get("format") != FORMAT:
        raise ValueError(f"{path}: its format is {index.get('format')!r}, not {FORMAT!r}")
    return index, names


def archives(folders):
    """[(path, index)] of the archives in these folders."""
    return [(path, read_archive(path)[0]) for folder in folders if folder.is_dir()
            for path in sorted(folder.glob("*.tar.gz"))]


def unpack(path, wanted, into):
    """The files of these pieces, below `into`."""
    with tarfile.open(path, "r:gz") as tar:
        for member in tar.getmembers():
            top = pathlib.PurePosixPath(member.name).parts[0]
            if member.isfile() and top in wanted and ".." not in member.name:
                target = into / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(tar.extractfile(member).read())


class Course:
    """One call. `build` holds tools/executor and tests/executor."""

    def __init__(self, build, folder, call, on, seconds, done_in, began):
        self.build, self.folder, self.call, self.on = build, folder, call, on
        self.to_end, self.to_keep = (min(one, seconds / 10) for one in (TO_END, TO_KEEP))
        self.ends = began + seconds - self.to_keep - self.to_end  # of the last piece
        self.archive = folder / f"{call}.tar.gz"
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="gpu-evidence-"))
        self.slower = {}  # kind: how many times its estimate the last piece took
        self.index = {"format": FORMAT, "call": call, "on": on, "date": datetime.date.today().isoformat(),
                      "done": [], "left_out": [], "failed": [], "unfinished": []}
        self.elsewhere = set()  # pieces that another call has done
        for path, index in archives([folder, *done_in]):
            if index["on"] != on:
                raise ValueError(f"{path} is of {index['on']}; give {on} a folder of its own")
            unpack(path, {one["piece"] for one in index["done"]} | set(index["unfinished"]), self.work)
            if path == self.archive:
                self.index["done"] = index["done"]
            else:
                self.elsewhere |= {one["piece"] for one in index["done"]}
        self.stopped = False  # by a signal
        self.failed_before = {one["piece"] for _, index in archives([folder, *done_in]) for one in index["failed"]}

    def environment(self):
        """LibTorch's libraries, and those that travel."""
        paths = [str(self.build)]
        found = subprocess.run([sys.executable, "-c", "import importlib.util as u; print((u.find_spec('torch') or "
                                "exit(1)).submodule_search_locations[0])"], stdout=subprocess.PIPE, text=True)
        if found.returncode == 0:
            paths.insert(0, found.stdout.strip() + "/lib")
        paths += [os.environ["LD_LIBRARY_PATH"]] if os.environ.get("LD_LIBRARY_PATH") else []
        return os.environ | {"LD_LIBRARY_PATH": ":".join(paths)}

    def keep(self):
        """Puts the archive of all that is done in place, at once."""
        done = {one["piece"] for one in self.index["done"]}
        self.index["unfinished"] = [piece.name for piece in pieces.pieces_of(self.call, self.on)
                                    if piece.goes_on and piece.name not in done | self.elsewhere
                                    and (self.work / piece.name).is_dir()]
        told = {one["piece"] for one in self.index["failed"]}
        new = self.archive.with_suffix(".tmp")
        with tarfile.open(new, "w:gz", compresslevel=6) as tar:
            text = json.dumps(self.index, indent=1).encode()
            info = tarfile.TarInfo("index.json")
            info.size, info.mtime = len(text), int(time.time())
            tar.addfile(info, io.BytesIO(text))
            for name in sorted(done | set(self.index["unfinished"])):
                tar.add(self.work / name, arcname=name)
            for name in sorted(told):
                log = self.work / f".{name}" / "log.txt"
                if log.exists():
                    tar.add(log, arcname=f"{name}/log.txt")
        os.replace(new, self.archive)

    def spawn(self, words, log, ends):
        """The exit code of one command; None where a clock or a signal ended it."""
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                        env=self.env, cwd=self.work, start_new_session=True)
        while True:
            try:
                return self.process.wait(0.1)
            except subprocess.TimeoutExpired:
                if self.stopped or time.monotonic() > ends:
                    self.end_process()
                    return None

    def end_process(self):
        """Asks its whole group to end, and ends what does not."""
        for one, patience in ((signal.SIGTERM, self.to_end), (signal.SIGKILL, 5)):
            try:
                os.killpg(self.process.pid, one)
            except ProcessLookupError:
                pass
            try:
                self.process.wait(patience)
                break
            except subprocess.TimeoutExpired:
                continue
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # what it started
        except ProcessLookupError:
            pass

    def run(self, piece):
        """Runs one piece in a folder of its own, which gets its name when it is done."""
        out = self.work / f".{piece.name}"
        shutil.rmtree(out, ignore_errors=True)
        if piece.goes_on and (self.work / piece.name).is_dir():
            shutil.copytree(self.work / piece.name, out)  # what was kept of it
        out.mkdir(exist_ok=True)
        began = time.monotonic()
        put = {"tools": self.build / "tools/executor", "tests": self.build / "tests/executor", "out": out,
               "before": self.work / piece.after, "python": sys.executable, "here": HERE,
               "jobs": min(4, len(os.sched_getaffinity(0))),
               "left": max(1, int(min(self.ends - began - 1, piece.seconds if piece.kind == "validation" else 1e9)))}
        code, said = 0, []
        with open(out / "log.txt", "w", encoding="utf-8") as log:
            for command in piece.commands:
                words = [word.format(**put) for word in command]
                said.append(" ".join(command))
                print("$", *words, file=log, flush=True)
                try:
                    code = self.spawn(words, log, min(self.ends, began + piece.most))
                except OSError as error:
                    code, _ = 127, print(error, file=log, flush=True)
                if code != 0:
                    break
        took = round(time.monotonic() - began, 2)
        return code, took, said

    def settle(self, piece, code, took, said):
        """What came of it, into the index. True where it failed."""
        out, final = self.work / f".{piece.name}", self.work / piece.name
        about = {"piece": piece.name, "seconds": took, "estimated": round(self.estimate(piece), 1), "commands": said}
        if code == 0:
            shutil.rmtree(final, ignore_errors=True)
            out.rename(final)
            self.index["done"].append(about)
            self.slower[piece.kind] = min(10.0, max(0.3, took / piece.seconds))
            self.keep()
            if self.archive.stat().st_size > MOST:
                self.index["done"].pop()
                self.leave_out(piece, f"with its files the archive has more than {MOST >> 20} MiB")
            return False
        if code is None:
            if piece.goes_on and (out / piece.goes_on).exists():
                shutil.rmtree(final, ignore_errors=True)
                out.rename(final)
            self.leave_out(piece, f"stopped by {'a signal' if self.stopped else 'the clock'} after {took:.0f} s")
            return False
        lines = (out / "log.txt").read_text(errors="replace").strip().splitlines()
        self.index["failed"].append({"piece": piece.name, "seconds": took,
                                     "why": f"{f'exit code {code}' if code >= 0 else f'signal {-code}'}: "
                                     f"{lines[-1] if lines else ''}"[:500]})
        return True

    def leave_out(self, piece, why):
        self.index["left_out"].append({"piece": piece.name, "why": why})

    def waiting(self, have):
        """What is not done, in order. What failed as a group is run one by one."""
        for piece in pieces.pieces_of(self.call, self.on):
            begun = piece.name in self.failed_before or any(one.name in have for one in piece.singly)
            for one in piece.singly if piece.singly and begun else (piece,):
                if one.name not in have:
                    yield one

    def estimate(self, piece):
        return piece.seconds * self.slower.get(piece.kind, 1.0)

    def go(self, tell):
        """Runs what is not done, and returns the index. Never takes longer than its seconds."""
        self.env = self.environment()
        have = {one["piece"] for one in self.index["done"]} | self.elsewhere
        waiting = list(self.waiting(have))
        while waiting and not self.stopped:
            piece = waiting.pop(0)
            if piece.after and piece.after not in have:
                self.leave_out(piece, f"it reads {piece.after}")
                continue
            needed, room = self.estimate(piece), max(0.0, self.ends - time.monotonic())
            if room < (min(needed, 5) if piece.goes_on else needed):
                self.leave_out(piece, f"about {needed:.0f} s, and {room:.0f} s were left")
                continue
            tell(f"{piece.name}: about {needed:.0f} s")
            code, took, said = self.run(piece)
            if self.settle(piece, code, took, said):
                waiting[:0] = [one for one in piece.singly if one.name not in have]
                tell(f"{piece.name} failed: {self.index['failed'][-1]['why']}")
            elif code == 0:
                have.add(piece.name)
            self.keep()
        for piece in waiting if self.stopped else ():
            self.leave_out(piece, "a signal came")
        self.keep()
        shutil.rmtree(self.work, ignore_errors=True)
        return self.index
