"""Is a sweep from Python the sweep of the command, in memory and in its folder?"""
import csv
import gzip
import io
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import unittest

import stageline as sl

TRACE = "uniform:layers={layers},forward=1ms,weights=1MB,output=1MB,stash=2MB"
AXES = {"schedule": ["1f1b", "zb_h1", "list:limit=3", "dualpipe"], "layers": [6, 16],
        "devices": range(2, 5), "link": "1GB/s..400GB/s:log4", "memory": ["20MB", 1e9]}
FLAGS = ["--axis", "schedule=1f1b|zb_h1|list:limit=3|dualpipe", "--axis", "layers=6,16",
         "--axis", "devices=2..4", "--axis", "link=1GB/s..400GB/s:log4",
         "--axis", "memory=20MB,1000000000B", "--microbatches", "8", "--chunk", "50"]
SCENARIOS = 4 * 2 * 3 * 4 * 2


class Case(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)

    def command(self, *words):
        command = os.environ.get("STAGELINE_COMMAND")
        if not command:
            self.skipTest("STAGELINE_COMMAND names no command of this build")
        subprocess.run([command, *words], check=True, stdout=subprocess.DEVNULL)


def ask(**more):
    return sl.sweep(TRACE, axes=AXES, microbatches=8, chunk=50, **more)


class Sweeps(Case):
    def test_the_command_makes_the_same(self):
        folder = self.scratch / "runs"
        self.command("sweep", TRACE, *FLAGS, "--out", str(folder), "--merge", "--quiet")
        written = (folder / "table.csv.gz").read_bytes()
        table = ask()
        self.assertIsNone(table.folder)
        self.assertEqual(table.csv(), gzip.decompress(written).decode())
        there = ask(out=folder)  # of the same question: nothing is left to do
        self.assertEqual(there.csv(), table.csv())
        (folder / "table.csv.gz").unlink()
        self.assertEqual(there.merge(), str(folder / "table.csv.gz"))
        self.assertEqual((folder / "table.csv.gz").read_bytes(), written)
        with self.assertRaisesRegex(sl.UsageError, "out="):
            table.merge()

    def test_rows(self):
        table = ask(threads=2)
        self.assertEqual(len(table), SCENARIOS)
        self.assertEqual([row["number"] for row in table], list(range(SCENARIOS)))
        read = list(csv.DictReader(io.StringIO(table.csv())))
        self.assertEqual([{key: "" if value is None else str(value) for key, value in row.items()
                           if key not in ("throughput", "bubble")} for row in table.rows],
                         [{key: value for key, value in row.items()
                           if key not in ("throughput", "bubble")} for row in read])
        for row, text in zip(table, read):
            for key in ("throughput", "bubble"):
                self.assertEqual(row[key], float(text[key]) if text[key] else None)
        for number in (0, 49, 50, 100):
            row = table[number]
            alone = sl.simulate(TRACE.format(layers=row["layers"]), devices=row["devices"],
                                link=row["link"], memory=row["memory"], microbatches=8,
                                schedule=row["schedule"])
            self.assertEqual((row["step_ps"], row["peak_bytes"], row["fits"] == "yes"),
                             (alone.step_time_ps, alone.peak_memory, alone.fits))
        cannot = [row for row in table if row["why_not"]]
        self.assertEqual({(row["schedule"], row["devices"]) for row in cannot}, {("dualpipe", 3)})
        self.assertEqual({row["step_ps"] for row in cannot}, {None})
        with self.assertRaises(IndexError):
            table[SCENARIOS]

    def test_resume(self):
        folder = self.scratch / "runs"
        done = []
        first = ask(out=folder, progress=lambda rows, wanted: done.append((rows, wanted)))
        self.assertEqual(done[-1], (SCENARIOS, SCENARIOS))
        self.assertEqual(sorted(done), done)
        whole = first.csv()
        lost = folder / "chunk-000002.csv.gz"
        before = lost.read_bytes()
        lost.unlink()
        done.clear()
        self.assertEqual(ask(out=folder, progress=lambda *said: done.append(said)).csv(), whole)
        self.assertEqual(done[-1], (50, 50))
        self.assertEqual(lost.read_bytes(), before)
        with self.assertRaisesRegex(sl.UsageError, "another sweep"):
            sl.sweep(TRACE, axes=AXES, microbatches=16, chunk=50, out=folder)
        lost.write_bytes(before[:-9])
        for read in (lambda: first.rows, first.csv, first.merge):
            with self.assertRaisesRegex(sl.UsageError, "damaged"):
                read()

    def test_a_sweep_file(self):
        spec = {"format": "stageline-sweep 1", "fixed": {"trace": TRACE, "microbatches": 8},
                "axes": {**AXES, "devices": "2..4", "memory": "20MB,1000000000B"}, "chunk": 50}
        file = self.scratch / "sweep.json"
        file.write_text(json.dumps(spec), encoding="utf-8")
        self.assertEqual(sl.sweep(file).csv(), ask().csv())
        self.assertEqual(sl.sweep(spec).csv(), ask().csv())
        with self.assertRaisesRegex(sl.UsageError, "leave the others out"):
            sl.sweep(file, microbatches=4)

    def test_values_of_all_kinds(self):
        model = sl.from_arrays([1e-3] * 8, backward=2e-3, weights=1e6, output=1e6)
        table = sl.sweep(None, axes={"trace": [model], "link": [(10e9, 5e-6), 2e9],
                                     "all_pipelines": [True, False], "jitter": [0.05, 0.1]},
                         devices=2, microbatches=4, scenarios=16)
        self.assertEqual({row["link"] for row in table},
                         {"10000000000B/s,5000000ps", "2000000000B/s"})
        self.assertEqual([row["jitter"] for row in table][:2], [0.05, 0.1])
        self.assertTrue(all(row["p5_ps"] <= row["p95_ps"] for row in table))
        drawn = sl.sweep("uniform8", axes={"link": "1GB/s..9GB/s:random"}, draws=3, draw_seed=7)
        self.assertEqual(len({row["link"] for row in drawn}), 3)

    def test_sizes_of_numpy(self):
        try:
            import numpy as np
        except ImportError:
            self.skipTest("there is no numpy")
        table = sl.sweep("uniform8", axes={"devices": np.arange(2, 5), "link": "1GB/s..9GB/s:random"},
                         chunk=np.int64(2), draws=np.int32(3), draw_seed=np.uint8(7),
                         threads=np.int64(1))
        self.assertEqual(table.csv(), sl.sweep(
            "uniform8", axes={"devices": [2, 3, 4], "link": "1GB/s..9GB/s:random"}, chunk=2, draws=3,
            draw_seed=7).csv())

    def test_refusals(self):
        for axes, settings, said in (
                ({"device": [2, 4]}, {}, "devices"),
                ({"devices": []}, {}, "no values"),
                ({"devices": range(2, 4)}, {"microbatches": [2, 4]}, "microbatches.*axes="),
                ({"devices": range(2, 4)}, {"schedule": lambda problem: []}, "by name"),
                ({"devices": range(2, 4), "memory": [-1]}, {}, "memory"),
                ({"devices": range(2, 4)}, {"chunk": 0}, "chunk"),
                (None, {}, "axes"),
                ({"devices": range(2, 4)}, {"client": object()}, "client")):
            with self.assertRaisesRegex(sl.UsageError, said):
                sl.sweep("uniform8", axes=axes, **settings)

    def test_a_signal_leaves_whole_chunks(self):
        class Rung(Exception):
            pass

        def handler(number, frame):
            raise Rung()
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, handler))
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        folder = self.scratch / "runs"
        axes = {"microbatches": range(64, 128), "devices": range(2, 9), "seed": range(64)}
        with self.assertRaises(Rung):
            sl.sweep("resnet50-cpu", axes=axes, jitter=0.05, chunk=4, out=folder)
        for file in folder.glob("chunk-*"):
            self.assertEqual(file.suffix, ".gz")
            self.assertEqual(len(gzip.decompress(file.read_bytes()).splitlines()), 5)

    def test_frames(self):
        try:
            import pandas
            import pyarrow
        except ImportError:
            self.skipTest("there is no pandas with pyarrow")
        table = ask()
        arrow = pyarrow.table(table)
        arrow.validate(full=True)
        self.assertEqual(arrow.to_pylist(), table.rows)
        self.assertEqual(arrow.schema.field("step_ps").type, pyarrow.int64())
        self.assertEqual(arrow.schema.field("devices").type, pyarrow.int64())
        frame = table.to_pandas()
        self.assertEqual(len(frame), SCENARIOS)
        file = self.scratch / "table.parquet"
        table.to_parquet(file)
        self.assertEqual([one.name for one in self.scratch.iterdir()], ["table.parquet"])
        pandas.testing.assert_frame_equal(pandas.read_parquet(file), frame)

    def test_parquet_is_written_as_the_command_writes(self):
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            self.skipTest("there is no pyarrow")
        trace, runs = self.scratch / "trace.json", self.scratch / "runs"
        trace.write_text(sl.trace("uniform8").to_json(), encoding="utf-8")
        table = sl.sweep(trace, axes={"devices": [2, 4]}, out=runs)
        link = self.scratch / "link.json"
        link.symlink_to(trace)
        before = {file: file.read_bytes() for file in (trace, *runs.iterdir())}
        for file in (*before, link, runs / "table.csv.gz"):
            with self.subTest(file), \
                    self.assertRaisesRegex(sl.UsageError, "write another file|give it another name"):
                table.to_parquet(file)
        spec = self.scratch / "sweep.json"
        spec.write_text(json.dumps({"format": "stageline-sweep 1", "fixed": {"trace": "uniform8"},
                                    "axes": {"devices": [2, 4]}}), encoding="utf-8")
        with self.assertRaisesRegex(sl.UsageError, "write another file"):
            sl.sweep(spec).to_parquet(spec)
        self.assertEqual({file: file.read_bytes() for file in before}, before)
        with self.assertRaisesRegex(sl.UsageError, "there is no folder"):
            table.to_parquet(self.scratch / "none" / "table.parquet")

        file = self.scratch / "table.parquet"
        file.write_bytes(b"")
        file.chmod(0o640)
        to_it = self.scratch / "to_it.parquet"
        to_it.symlink_to(file.name)
        table.to_parquet(to_it)
        self.assertTrue(to_it.is_symlink())
        self.assertEqual(file.stat().st_mode & 0o777, 0o640)
        pipe = self.scratch / "pipe"
        os.mkfifo(pipe)
        taken = []
        reader = threading.Thread(target=lambda: taken.append(pipe.read_bytes()))
        reader.start()
        table.to_parquet(pipe)
        reader.join()
        self.assertTrue(pipe.is_fifo())
        self.assertEqual(taken, [file.read_bytes()])
        self.assertEqual(parquet.read_table(pyarrow.BufferReader(taken[0])).to_pylist(), table.rows)
        self.assertEqual(list(self.scratch.glob("*.tmp")), [])


class Phases(Case):
    ASKED = {"devices": 4, "schedules": ["1f1b", "zb_h1", "zb_h2"]}

    def test_the_command_draws_the_same(self):
        said, drawn = self.scratch / "phase.json", self.scratch / "phase.svg"
        self.command("phase", "uniform:layers=16", "--devices", "4", "--schedule",
                     "1f1b,zb_h1,zb_h2", "--x", "link=1GB/s..400GB/s", "--y", "memory=30MB..120MB",
                     "--json", str(said), "--svg", str(drawn), "--quiet")
        found = sl.phase("uniform:layers=16", x={"link": "1GB/s..400GB/s"},
                         y="memory=30MB..120MB", **self.ASKED)
        self.assertEqual(found.json(), said.read_text(encoding="utf-8"))
        self.assertEqual(found.svg(), drawn.read_text(encoding="utf-8"))
        self.assertEqual(found._repr_svg_(), found.svg())
        self.assertEqual([row["winner"] for row in found.rows],
                         [cell["winner"] for cell in json.loads(found.json())["cells"]])
        self.assertIn("zb_h2", found.text())

    def test_a_model_has_its_name(self):
        model = sl.from_arrays([1e-3] * 8, backward=2e-3, weights=1e6, output=1e6, name="mine")
        found = sl.phase(model, x={"microbatches": range(4, 9, 2)}, y={"link": [1e9, 2e9]},
                         exhaustive=True, **self.ASKED)
        self.assertIn("The fastest schedule of mine", found.svg())
        self.assertEqual(found.simulated, 6)
        with self.assertRaisesRegex(sl.UsageError, "theme"):
            found.svg(theme="pink")
        with self.assertRaisesRegex(sl.UsageError, "^x: one setting"):
            sl.phase(model, x="link", y={"link": [1e9]})


if __name__ == "__main__":
    unittest.main()
