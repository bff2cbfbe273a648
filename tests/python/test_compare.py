"""Does a comparison rank what can run, and say why the rest cannot?"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import stageline as sl


class Comparisons(unittest.TestCase):
    def test_rows(self):
        table = sl.compare("resnet50-cpu", devices=4, microbatches=8,
                           schedules=["gpipe", "1f1b", "zb_h1", "seq1f1b"])
        self.assertEqual([row["schedule"] for row in table.rows[:-1]], ["zb_h1", "1f1b", "gpipe"])
        self.assertIn("image", table.rows[-1]["error"])
        self.assertIsNone(table.results[-1])
        self.assertIsNone(table.rows[-1]["step_time"])
        for row, result in zip(table.rows[:-1], table.results):
            alone = sl.simulate("resnet50-cpu", devices=4, microbatches=8,
                                schedule=row["schedule"])
            self.assertEqual(row["step_time_ps"], alone.step_time_ps)
            self.assertEqual(result.json(), alone.json())
        self.assertEqual(table.best.schedule, "zb_h1")
        self.assertEqual(table["gpipe"].schedule, "gpipe")
        with self.assertRaises(KeyError):
            table["seq1f1b"]

    def test_figure_of_several(self):
        runs = [sl.simulate("uniform8", devices=4, microbatches=8, schedule=name)
                for name in ("gpipe", "zb_h1")]
        figure = sl.draw(runs)
        picture = figure.svg(width=800)
        self.assertIn("<svg", picture)
        for name in ("gpipe", "zb_h1"):
            self.assertIn(name, picture)
        self.assertEqual(figure._repr_svg_(), figure.svg())
        self.assertNotEqual(figure.svg(["timeline", "memory"]), figure.svg())
        self.assertIn("<html", figure.html())
        self.assertEqual(sl.draw(runs[:1]).runs, runs[:1])
        table = sl.compare("uniform8", devices=4, microbatches=8, schedules=["gpipe", "zb_h1"])
        self.assertEqual([run.schedule for run in sl.draw(table).runs], ["zb_h1", "gpipe"])
        for wrong, words in (([], "there are none"), (["1f1b"], "results belong there"),
                             ([runs[0], sl.simulate("uniform8", devices=4, microbatches=4)],
                              "number of micro-batches of gpipe is \"8\", and that of 1f1b \"4\"")):
            with self.subTest(words), self.assertRaisesRegex(sl.UsageError, words):
                sl.draw(wrong).svg()

    def test_all_and_several_devices(self):
        table = sl.compare("uniform8", devices=[2, 4], microbatches=4)
        self.assertEqual(len(table), 2 * len(sl.schedules()))
        self.assertEqual({row["devices"] for row in table}, {2, 4})

    def test_what_does_not_fit_comes_last(self):
        table = sl.compare("resnet50-cpu", devices=4, microbatches=16, memory="1.3GB",
                           schedules="1f1b,gpipe,zb_h2")
        self.assertEqual([row["fits"] for row in table], [True, False, False])
        self.assertEqual(table.best.schedule, "1f1b")

    def test_own_schedules(self):
        from test_programs import gpipe
        table = sl.compare("uniform8", devices=4, microbatches=8, schedules=["1f1b", gpipe])
        self.assertEqual({row["schedule"] for row in table}, {"1f1b", "gpipe"})
        with self.assertRaisesRegex(sl.UsageError, "of your own"):
            table.json()

    def test_one_own_schedule(self):
        from test_programs import gpipe
        for one in (gpipe, sl.scheduler(gpipe)):
            table = sl.compare("uniform8", devices=4, microbatches=8, schedules=one)
            self.assertEqual([row["schedule"] for row in table], ["gpipe"])

    def test_own_schedules_get_all_devices_and_cuts(self):
        from test_programs import gpipe
        cuts = ["0-1,2-", "0-5,6-", "0-1,2-"]
        table = sl.compare("uniform8", devices=2, microbatches=4, partition=cuts,
                           schedules=["gpipe:reverse=yes", gpipe])
        steps = {name: {row["partition"]: row["step_time_ps"] for row in table
                        if row["schedule"] == name} for name in ("gpipe", "gpipe:reverse=yes")}
        self.assertEqual(steps["gpipe"], steps["gpipe:reverse=yes"])
        self.assertEqual(set(steps["gpipe"]), set(cuts))
        table = sl.compare("uniform8", devices=[2, 4], microbatches=4, schedules=[gpipe])
        self.assertEqual({row["devices"] for row in table}, {2, 4})
        with self.assertRaisesRegex(sl.UsageError, "one cut, and 3 were given"):
            sl.simulate("uniform8", devices=2, partition=cuts)

    def test_pictures_of_rows(self):
        table = sl.compare("uniform8", devices=4, microbatches=8, schedules="1f1b")
        self.assertEqual(table.best.svg(),
                         sl.simulate("uniform8", devices=4, microbatches=8).svg())

    def test_html(self):
        table = sl.compare("uniform8", devices=4, microbatches=8, schedules="1f1b,seq1f1b")
        table.rows[-1]["error"] = "<script>"
        said = table._repr_html_()
        self.assertIn("&lt;script&gt;", said)
        self.assertNotIn("<script>", said)
        self.assertEqual(said.count("<tr>"), 3)
        self.assertIn("1f1b", repr(table))

    def test_json_of_the_command(self):
        command = os.environ.get("STAGELINE_COMMAND")
        table = sl.compare("uniform8", devices=4, microbatches=8)
        self.assertEqual(len(json.loads(table.json())), len(table))
        if not command:
            self.skipTest("STAGELINE_COMMAND names no command of this build")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "out.json"
            subprocess.run([command, "compare", "uniform8", "--devices", "4", "--microbatches", "8",
                            "--json", str(file), "--quiet"], check=False,
                           stdout=subprocess.DEVNULL)
            self.assertEqual(table.json(), file.read_text(encoding="utf-8"))

    def test_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("there is no pandas")
        table = sl.compare("uniform8", devices=4, microbatches=8, schedules="1f1b,zb_h1")
        frame = table.to_pandas()
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(frame["step_time_ps"].tolist(),
                         [row["step_time_ps"] for row in table])
        with_gaps = sl.compare("uniform8", devices=3, microbatches=8)
        self.assertIn(None, [row["step_time_ps"] for row in with_gaps])
        self.assertEqual(str(with_gaps.to_pandas()["step_time_ps"].dtype), "Int64")  # exact

    def test_arrow(self):
        try:
            import pyarrow
        except ImportError:
            self.skipTest("there is no pyarrow")
        table = sl.compare("uniform8", devices=3, microbatches=8)
        self.assertEqual(pyarrow.table(table).to_pylist(), table.rows)
