"""Does a type checker understand the package, and programs that use it?"""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

USER = '''
import numpy as np
import stageline as sl

trace: sl.Model = sl.trace("resnet50-cpu")
where: sl.Cluster = sl.cluster(devices=4, link=(10e9, 5e-6), memory="8GB")
r: sl.Result = sl.simulate(trace, where, schedule="zb_h1", microbatches=16)
step: float = r.step_time + r.memory[0]["peak"] + r.waterfall()["ideal"]
exact: int = r.step_time_ps
spans = r.timeline.array
length: int = int((spans["end_ps"] - spans["start_ps"]).sum())
at, held = r.memory_curve(0)
gaps = np.diff(at)
program: sl.Program = r.program
text: str = str(program) + r.svg(width=800) + r.html() + r.json()
best: sl.Result = sl.compare(trace, where, schedules=["1f1b"], progress=True).best
table: sl.SweepTable = sl.sweep(trace, axes={"devices": range(2, 5)}, progress=print)
names: list[str] = [str(row["schedule"]) for row in table] + sl.schedules()
rules: list[str] = [str(found["rule"]) for found in sl.check(program)]


@sl.scheduler(like="1f1b")
def mine(problem: sl.Problem) -> list[list[str]]:
    return [[] for _ in range(problem.devices)]


try:
    sl.simulate(trace, where, schedule=mine)
except sl.Deadlock as error:
    print(error.cycle, error.line)
'''


@unittest.skipIf(importlib.util.find_spec("mypy") is None, "there is no mypy")
class Types(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = pathlib.Path(scratch.name)

    def mypy(self, *words):
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(self.scratch / "cache"),
             *words], stdout=subprocess.PIPE, text=True, check=False)
        return [line for line in done.stdout.splitlines() if ": error: " in line]

    def test_a_program_that_uses_it(self):
        file = self.scratch / "user.py"
        file.write_text(USER, encoding="utf-8")
        self.assertEqual(self.mypy(str(file)), [])
        file.write_text(USER.replace("exact: int", "exact: str"), encoding="utf-8")
        self.assertEqual(len(self.mypy(str(file))), 1)

    def test_the_package(self):
        found = self.mypy("--allow-untyped-calls", "--ignore-missing-imports", "-p", "stageline")
        self.assertEqual([line for line in found if "_core.pyi" not in line], [])
        self.assertTrue(found)  # stubgen leaves some lists without their items: it has looked


if __name__ == "__main__":
    unittest.main()
