"""Does a sweep on Dask survive what happens to machines, and make the same table?

The workers are processes of this machine.
"""
import gzip
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import warnings
from unittest import mock

import stageline as sl

try:
    from distributed import Client, LocalCluster, get_task_stream

    from stageline import _dask
    WHY_NOT = ""
except ImportError:
    WHY_NOT = "there is no distributed"

QUESTION = {"trace": "resnet50-cpu", "chunk": 8, "schedule": "1f1b", "scenarios": 256,
            "jitter": 0.05,
            "axes": {"devices": range(2, 6), "microbatches": range(8, 24), "seed": range(1, 6)}}
CHUNKS = 4 * 16 * 5 // 8
CLUSTER = (pathlib.Path(__file__).parents[2] / "traces/data/clusters/cpu2.json").read_text(
    encoding="utf-8")
# Of a driver that is killed: the address of the scheduler, the folder.
DRIVER = """
import sys
from distributed import Client
import stageline as sl
from test_dask import QUESTION
with Client(sys.argv[1]) as client:
    sl.sweep(**QUESTION, out=sys.argv[2], client=client)
"""


def until(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise AssertionError("it does not happen")
        time.sleep(0.01)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Machines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.expected = sl.sweep(**QUESTION).csv()
        cls.cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True,
                                   host="127.0.0.1", dashboard_address=None, silence_logs=50)
        cls.addClassCleanup(cls.cluster.close)
        cls.client = Client(cls.cluster)
        cls.addClassCleanup(cls.client.close)

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name) / "runs"

    def chunks(self):
        return list(self.folder.glob("chunk-*.csv.gz"))

    def check_table(self, table):
        self.assertEqual(table.csv(), self.expected)
        numbers = [row["number"] for row in table]
        self.assertEqual(numbers, list(range(len(numbers))))

    def test_in_memory(self):
        done = []
        table = sl.sweep(**QUESTION, client=self.client,
                         progress=lambda rows, wanted: done.append((rows, wanted)))
        self.check_table(table)
        self.assertEqual(len(done), CHUNKS)
        self.assertEqual(done[-1], (8 * CHUNKS, 8 * CHUNKS))

    def test_a_worker_dies_and_others_join_late(self):
        workers = self.client.run(os.getpid)  # by address
        dies, waits = workers.values()

        def disturb():
            until(lambda: len(self.chunks()) >= 3)
            os.kill(waits, signal.SIGSTOP)  # so that those that join find work, however late
            try:
                os.kill(dies, signal.SIGKILL)  # in a chunk, which is made again
                before = len(self.chunks())
                self.cluster.scale(3)
                until(lambda: len(self.chunks()) >= before + 3)
            finally:
                os.kill(waits, signal.SIGCONT)
        other = threading.Thread(target=disturb)
        other.start()
        with get_task_stream(client=self.client) as stream:
            table = sl.sweep(**QUESTION, out=self.folder, client=self.client)
        other.join()
        self.check_table(table)
        self.assertEqual(len(self.chunks()), CHUNKS)
        late = [task for task in stream.data
                if task["worker"] not in workers and "make_chunk" in task["key"]]
        self.assertGreaterEqual(len(late), 2)

    def test_results_of_a_dead_worker_are_made_again(self):
        pids = self.client.run(os.getpid).values()
        killed = []

        def disturb(rows, wanted):
            if rows >= wanted // 4 and not killed:
                killed.append(next(iter(pids)))
                os.kill(killed[0], signal.SIGKILL)
        self.check_table(sl.sweep(**QUESTION, client=self.client, progress=disturb))
        self.assertTrue(killed)

    def test_a_driver_dies_and_is_started_again(self):
        place = str(pathlib.Path(__file__).parent)
        words = [sys.executable, "-c", DRIVER, self.cluster.scheduler_address, str(self.folder)]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(
            [place, *filter(None, [os.environ.get("PYTHONPATH")])])}
        driver = subprocess.Popen(words, env=env)
        self.addCleanup(driver.wait)
        self.addCleanup(driver.kill)
        until(lambda: len(self.chunks()) >= 3)
        driver.kill()
        driver.wait()
        before = {file: file.stat().st_mtime_ns for file in self.chunks()}
        self.assertLess(len(before), CHUNKS)
        subprocess.run(words, env=env, check=True)
        self.check_table(sl.sweep(**QUESTION, out=self.folder))
        for file, when in before.items():
            self.assertEqual(file.stat().st_mtime_ns, when, "a finished chunk was made again")

    def test_files_travel(self):
        place = pathlib.Path(self.folder.parent)
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(place)  # the workers stay where they are
        many = sl.from_arrays([1e-3] * 4000, backward=2e-3, weights=1e6, output=1e6)
        (place / "many.json").write_text(many.to_json(), encoding="utf-8")
        self.assertGreater((place / "many.json").stat().st_size, 200_000)
        (place / "few.json.gz").write_bytes(
            gzip.compress(sl.trace("uniform8").to_json().encode()))
        (place / "cluster.json").write_text(CLUSTER, encoding="utf-8")
        asked = {"axes": {"name": ["many.json", "few.json.gz"], "microbatches": range(4, 12)},
                 "trace": "{name}", "cluster": "cluster.json", "chunk": 2}
        expected = sl.sweep(**asked)
        self.assertFalse(any(row["why_not"] for row in expected))
        sent = sl.sweep(**asked, client=self.client)
        self.assertEqual(sent.csv(), expected.csv())
        self.assertEqual(sl.sweep(**asked, client=self.client, out=self.folder).csv(), expected.csv())
        # Of the same path: each time what the caller has.
        (place / "many.json").write_text(sl.uniform(16).to_json(), encoding="utf-8")
        changed = sl.sweep(**asked)
        self.assertNotEqual(changed.csv(), expected.csv())
        self.assertEqual(sl.sweep(**asked, client=self.client).csv(), changed.csv())

    def test_a_large_trace_is_sent_once_to_each_worker(self):
        many = sl.from_arrays([1e-3] * 4000, backward=2e-3, weights=1e6, output=1e6, name="many")
        asked = {"trace": many, "axes": {"microbatches": range(4, 104)}, "devices": 2, "chunk": 1}
        expected = sl.sweep(**asked)
        packed = []

        def pack(luggage):
            packed.append(luggage.question)
            return vars(luggage)
        with mock.patch.object(_dask.Luggage, "__getstate__", pack, create=True), \
                warnings.catch_warnings():
            warnings.simplefilter("error")  # distributed warns of large task graphs
            table = sl.sweep(**asked, client=self.client)
        self.assertEqual(table.csv(), expected.csv())
        self.assertEqual(len(packed), 1)
        self.assertGreater(len(packed[0]), 200_000)

    def test_workers_of_another_version_are_refused(self):
        def other(dask_worker):
            from stageline import _core, _dask
            _dask._sweep_of.cache_clear()
            _dask._core = types.SimpleNamespace(
                **{**vars(_core), "Sweep": lambda question, file: types.SimpleNamespace(hash="other")})

        def same(dask_worker):
            from stageline import _core, _dask
            _dask._core = _core
            _dask._sweep_of.cache_clear()
        self.client.run(other)
        try:
            with self.assertRaisesRegex(sl.UsageError, "another version"):
                sl.sweep("uniform8", axes={"devices": [2, 4]}, client=self.client, retries=0)
        finally:
            self.client.run(same)

    def test_workers_that_do_not_see_the_folder_are_refused(self):
        job = _dask.Job
        with self.assertRaisesRegex(sl.UsageError, "all machines share"):
            # As if the workers had another disk.
            with mock.patch.object(_dask, "Job", lambda luggage, folder, threads: job(
                    luggage, "/nowhere/else", threads)):
                sl.sweep("uniform8", axes={"devices": [2, 4]}, client=self.client, retries=0,
                         out=self.folder)

    def test_workers_in_the_process_of_the_caller(self):
        with LocalCluster(n_workers=2, threads_per_worker=1, processes=False,
                          dashboard_address=None, silence_logs=50) as cluster, \
                Client(cluster) as client:
            self.check_table(sl.sweep(**QUESTION, client=client))


if __name__ == "__main__":
    unittest.main()
