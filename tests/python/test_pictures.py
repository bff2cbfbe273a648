"""Does .svg() take what `stageline draw` takes for its picture, and draw the same?"""
import inspect
import os
import re
import subprocess
import unittest

import stageline as sl

# Flags of draw that are neither a setting of a run nor of its picture: files, and what is printed.
NO_PICTURE = {"help", "svg", "pdf", "png", "html", "json", "chrome", "memory_snapshot", "columns", "full",
              "quiet"}
CALLED = {"from": "start", "to": "end"}  # words of Python
PROBLEM = ["uniform:layers=8", "--devices", "4", "--microbatches", "4"]
SAME = [  # flags, and what stands for them
    (["--aspect", "16:9"], {"aspect": "16:9"}),
    (["--aspect", "4:3", "--plain", "--theme", "dark"], {"aspect": "4:3", "plain": True, "theme": "dark"}),
    (["--width", "640", "--title", "Mine"], {"width": 640, "title": "Mine"}),
    (["--numbers", "from-1", "--rows", "gpu3=last,gpu0"], {"numbers": "from-1", "rows": ["gpu3=last", "gpu0"]}),
    (["--panels", "timeline", "--arrows", "messages:2"], {"panels": "timeline", "arrows": "messages:2"}),
    (["--arrows", "messages,weights"], {"arrows": ["messages", "weights"]}),
    (["--from", "4ms", "--to", "20ms"], {"start": 0.004, "end": 0.02}),
]


@unittest.skipUnless(os.environ.get("STAGELINE_COMMAND"), "STAGELINE_COMMAND names no command of this build")
class Pictures(unittest.TestCase):
    def said(self, *words):
        return subprocess.run([os.environ["STAGELINE_COMMAND"], "draw", *words], check=True,
                              capture_output=True, text=True, env={**os.environ, "COLUMNS": "0"}).stdout

    def test_every_option(self):
        flags = {name.replace("-", "_")
                 for name in re.findall(r"^  (?:-\w,)?--([a-z][a-z-]*)", self.said("--help", "all"), re.M)}
        settings = {row["name"] for row in sl._core.settings()}
        wanted = {CALLED.get(name, name) for name in flags - settings - NO_PICTURE} - {"batch"}
        self.assertIn("aspect", wanted)
        one = set(re.findall(r"[(,] ?(\w+): ", sl.Result.svg.__doc__.splitlines()[0]))
        several = set(inspect.signature(sl.Figure.svg).parameters) - {"self"}
        self.assertEqual(one, wanted)
        self.assertEqual(several, wanted)

    def test_same_bytes(self):
        result = sl.simulate("uniform:layers=8", devices=4, microbatches=4)
        for flags, words in SAME:
            with self.subTest(flags=flags):
                self.assertEqual(result.svg(**words), self.said(*PROBLEM, *flags, "--svg", "-"))
        runs = [sl.simulate("uniform:layers=8", devices=4, microbatches=4, schedule=name)
                for name in ("gpipe", "1f1b")]
        self.assertEqual(sl.draw(runs).svg(aspect="16:9", arrows="messages:0"),
                         self.said(*PROBLEM, "--schedule", "gpipe,1f1b", "--aspect", "16:9", "--arrows",
                                   "messages:0", "--svg", "-"))

    def test_refused(self):
        result = sl.simulate("uniform:layers=8", devices=4, microbatches=4)
        for words, why in (({"width": 900, "aspect": "16:9"}, "exclude"), ({"numbers": "all"}, "none of"),
                           ({"arrows": "messages:4"}, "0 to 3"), ({"rows": ["gpu7"]}, "no device"),
                           ({"aspect": "9"}, "WIDTH:HEIGHT")):
            with self.assertRaisesRegex(sl.UsageError, why):
                result.svg(**words)


if __name__ == "__main__":
    unittest.main()
