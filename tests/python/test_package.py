"""Is the package whole: light to import, typed, documented, and its examples true?"""
import doctest
import importlib
import inspect
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import stageline as sl

HERE = pathlib.Path(__file__).resolve().parent
README = HERE.parents[1] / "tools" / "python" / "README.md"
FRONT_PAGE = HERE.parents[1] / "README.md"


class Package(unittest.TestCase):
    def test_import_needs_nothing_else(self):
        heavy = ("numpy", "pandas", "pyarrow", "torch", "typing_extensions", "distributed")
        said = subprocess.run(
            [sys.executable, "-c", "import sys, stageline; print(*[name for name in "
             f"{heavy!r} if name in sys.modules])"], check=True, text=True,
            stdout=subprocess.PIPE).stdout.strip()
        self.assertEqual(said, "")

    def test_typed(self):
        folder = pathlib.Path(sl.__file__).parent
        self.assertTrue((folder / "py.typed").is_file())
        stubs = (folder / "_core.pyi").read_text(encoding="utf-8")
        for name in dir(sl._core):
            if not name.startswith("__"):
                self.assertRegex(stubs, rf"(class|def) {name}\b|^{name}\b|\n{name}\b", name)

    def test_names_of_others_cannot_drive_a_terminal(self):
        name = "a\x1b[31m\n\x9b\u202e\0b"
        wild = re.compile("[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
        trace = {**json.loads(sl.uniform(layers=2).to_json()), "name": name}
        model = sl.trace(json.dumps(trace))
        self.assertEqual(model.name, name)
        program = sl.simulate("uniform8", devices=2, microbatches=2).program
        program.schedule = name.replace("\n", "")
        table = sl.compare(model, devices=2, microbatches=2, schedules="1f1b")
        table.rows[0]["schedule"] = table.rows[0]["error"] = name
        table.sentences.append(name)
        for said in (repr(model), repr(program), repr(sl.simulate("uniform8", program=program)),
                     repr(sl.scheduler(lambda problem: [], name=program.schedule, like=name)),
                     *repr(table).splitlines(), table._repr_html_()):
            self.assertNotRegex(said, wild)
        self.assertEqual(len(repr(table).splitlines()), 2)
        with self.assertRaises(sl.UsageError) as caught:
            sl.simulate("uniform8", **{name: 2})
        self.assertNotRegex(str(caught.exception), wild)

    def test_all_is_documented(self):
        for name in sl.__all__:
            thing = getattr(sl, name)
            if inspect.isclass(thing) or inspect.isroutine(thing):
                self.assertTrue(inspect.getdoc(thing), name)

    def test_version(self):
        self.assertRegex(sl.version(), r"^\d+\.\d+\.\d+")
        self.assertTrue(sl.version().startswith(sl.__version__))

    def test_examples(self):
        try:
            import numpy  # noqa: F401
        except ImportError:
            self.skipTest("there is no numpy")
        attempted = 0
        for name in ("stageline", "stageline._api", "stageline._schedulers",
                     "stageline._sweep"):
            result = doctest.testmod(importlib.import_module(name))
            self.assertEqual(result.failed, 0, name)
            attempted += result.attempted
        self.assertGreater(attempted, 15)

    def test_front_page(self):
        if not FRONT_PAGE.is_file():
            self.skipTest("the sources are not here")
        try:
            import numpy, pandas, pyarrow  # noqa: E401, F401
        except ImportError as error:
            self.skipTest(f"there is no {error.name}")
        block = re.search(r"^```python$(.*?)^```$", FRONT_PAGE.read_text(encoding="utf-8"), re.M | re.S)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-c", block.group(1)], check=True, cwd=folder, stdout=subprocess.DEVNULL)
            self.assertGreater((pathlib.Path(folder) / "runs.parquet").stat().st_size, 0)

    def test_readme(self):
        if not README.is_file():
            self.skipTest("the sources are not here")
        try:
            import numpy  # noqa: F401
        except ImportError:
            self.skipTest("there is no numpy")
        result = doctest.testfile(str(README), module_relative=False)
        self.assertEqual(result.failed, 0)
        self.assertGreater(result.attempted, 8)
