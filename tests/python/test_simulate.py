"""Does a call give what the command gives, and say what is wrong where it cannot?"""
import inspect
import json
import os
import pathlib
import pickle
import re
import subprocess
import tempfile
import unittest

import stageline as sl

EQUAL = "uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms"


class Results(unittest.TestCase):
    def test_closed_form(self):
        # (m + p - 1) (F + B) of two layers a stage
        result = sl.simulate(EQUAL, devices=4, microbatches=8)
        self.assertEqual(result.step_time_ps, (8 + 4 - 1) * 2 * 3 * 10**9)
        self.assertEqual(result.step_time, 0.066)
        self.assertAlmostEqual(result.bubble, 3 / 11)
        self.assertEqual(result.devices, 4)
        self.assertIsNone(result.fits)

    def test_the_same_bytes_as_the_command(self):
        command = os.environ.get("STAGELINE_COMMAND")
        if not command:
            self.skipTest("STAGELINE_COMMAND names no command of this build")
        cases = [
            (["resnet50-cpu", "--devices", "4", "--microbatches", "8", "--schedule", "zb_h1"],
             lambda: sl.simulate("resnet50-cpu", devices=4, microbatches=8, schedule="zb_h1")),
            (["model:gpt2@h100,batch=4", "--cluster", "h100x8", "--dp", "2", "--tp", "2",
              "--zero", "1", "--microbatches", "6", "--tokens", "1e9"],
             lambda: sl.simulate(sl.model("gpt2", device="h100", batch=4), "h100x8", dp=2, tp=2,
                                 zero="1", microbatches=6, tokens="1e9")),
            (["uniform8", "--devices", "4", "--memory", "20MB", "--link", "1GB/s,5us",
              "--microbatches", "8"],
             lambda: sl.simulate("uniform8", sl.cluster(memory=20e6, link=(1e9, 5e-6)), devices=4,
                                 microbatches=8)),
        ]
        for words, ask in cases:
            with self.subTest(" ".join(words)), tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / "out.json"
                subprocess.run([command, "simulate", *words, "--json", str(file), "--quiet"],
                               check=False, stdout=subprocess.DEVNULL)
                self.assertEqual(ask().json(), file.read_text(encoding="utf-8"))

    def test_json_has_the_numbers(self):
        result = sl.simulate("resnet50-cpu", devices=4, microbatches=8)
        said = json.loads(result.json())
        self.assertEqual(said["step_time_ps"], result.step_time_ps)
        self.assertEqual(max(one["peak"] for one in result.memory), result.peak_memory)

    def test_pictures(self):
        result = sl.simulate(EQUAL, devices=4, microbatches=8)
        self.assertTrue(result.svg().startswith("<?xml"))
        self.assertEqual(result.svg(), result._repr_svg_())
        page = result.html()
        self.assertTrue(page.startswith("<!DOCTYPE html>"))
        self.assertIn("default-src 'none'", page)
        self.assertIn('id="stageline-data"', page)
        self.assertEqual(page, result.html())
        self.assertLess(len(result.svg(panels=["timeline"])), len(result.svg()))
        self.assertNotEqual(result.svg(start=0.01, end=0.02), result.svg())
        with self.assertRaisesRegex(sl.UsageError, "did you mean \"memory\""):
            result.svg(panels=["memori"])

    def test_the_cut_can_be_asked_for_again(self):
        asked = {"devices": 4, "microbatches": 8}
        for schedule in ("1f1b", "interleaved_1f1b", "zb_v", "dualpipe"):
            for trace in ("resnet50-cpu", EQUAL):
                with self.subTest(schedule, trace=trace):
                    result = sl.simulate(trace, schedule=schedule, **asked)
                    again = sl.simulate(trace, schedule=schedule, partition=result.partition, **asked)
                    self.assertEqual(again.partition, result.partition)
                    self.assertEqual(again.step_time_ps, result.step_time_ps)
        self.assertEqual(sl.simulate(EQUAL, partition="0-0,1-6,7-", devices=3).partition,
                         "0-0,1-6,7-7")

    def test_critical_path_has_no_gap(self):
        result = sl.simulate("resnet50-cpu", devices=4, microbatches=8, link="1GB/s,5us")
        path = result.critical_path
        self.assertEqual(path[0]["start_ps"], 0)
        self.assertEqual(path[-1]["end_ps"], result.makespan_ps)
        for one, next_one in zip(path, path[1:]):
            self.assertEqual(one["end_ps"], next_one["start_ps"])

    def test_causes_add_up(self):
        for result in (sl.simulate("resnet50-cpu", devices=4, microbatches=8, link="1GB/s,5us"),
                       sl.compare("resnet50-cpu", devices=4, microbatches=8, link="1GB/s,5us",
                                  schedules="1f1b").best):
            causes = result.waterfall()
            step = causes.pop("step")
            self.assertEqual(step, result.step_time)
            self.assertAlmostEqual(sum(causes.values()), step)
            self.assertGreater(causes["fill and drain"], 0)
            levers = result.sensitivity()
            self.assertEqual(levers[0]["faster"], min(lever["faster"] for lever in levers))
            self.assertLess(levers[0]["faster"], step)

    def test_memory_adds_up(self):
        result = sl.simulate("resnet50-cpu", devices=4, microbatches=8, memory="100GB")
        self.assertIs(result.fits, True)
        for one in result.memory:
            self.assertEqual(sum(one["at_peak"].values()), one["peak"])
            self.assertEqual(one["limit"], 100 * 10**9)

    def test_memory_over_time(self):
        try:
            import numpy  # noqa: F401
        except ImportError:
            self.skipTest("there is no numpy")
        result = sl.simulate("resnet50-cpu", devices=4, microbatches=8)
        for device, one in enumerate(result.memory):
            at, held = result.memory_curve(device)
            self.assertEqual(len(at), len(held))
            # The steps of workspaces within an op are in the peak alone.
            self.assertLessEqual(max(held), one["peak"])
        with self.assertRaises(IndexError):
            result.memory_curve(4)


class Arguments(unittest.TestCase):
    def test_numbers_are_seconds_and_bytes(self):
        text = sl.simulate("resnet50-cpu", devices=4, link="12GB/s,5us", memory="8GB")
        number = sl.simulate("resnet50-cpu", devices=4, link=(12e9, 5e-6), memory=8 * 10**9)
        self.assertEqual(text.json(), number.json())

    def test_lengths_are_numbers_or_those_of_documents(self):
        asked = {"devices": 2, "microbatches": 3}
        text = sl.simulate("uniform8", lengths="100,200+100,50", **asked)
        listed = sl.simulate("uniform8", lengths=[100, [200, 100], 50], **asked)
        self.assertEqual(text.json(), listed.json())
        with self.assertRaises(sl.UsageError):
            sl.simulate("uniform8", lengths=[100, -1, 50], **asked)

    def test_a_model_keeps_its_micro_batch(self):
        model = sl.trace("resnet50-cpu", microbatch_size=4)
        self.assertEqual(model.batch, 4)
        asked = {"devices": 4, "microbatches": 8}
        expected = sl.simulate("resnet50-cpu", microbatch_size=4, **asked).step_time_ps
        self.assertNotEqual(sl.simulate("resnet50-cpu", **asked).step_time_ps, expected)
        self.assertEqual(sl.simulate(model, **asked).step_time_ps, expected)
        for axes in ({"trace": [model]}, {"devices": [4]}):
            row = sl.sweep(None if "trace" in axes else model, axes=axes,
                           **{key: value for key, value in asked.items() if key not in axes})[0]
            self.assertEqual(row["step_ps"], expected)

    def test_a_model_travels(self):
        for model in (sl.trace("resnet50-cpu", microbatch_size=4),
                      sl.from_arrays([1e-3, 2e-3], backward=3e-3, weights=1e6)):
            other = pickle.loads(pickle.dumps(model))
            self.assertEqual((other.to_json(), other.text, other.batch, other.opened_with),
                             (model.to_json(), model.text, model.batch, model.opened_with))

    def test_model_is_the_trace(self):
        self.assertEqual(sl.simulate(sl.trace("resnet50-cpu"), devices=4).json(),
                         sl.simulate("resnet50-cpu", devices=4).json())

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "trace.json"
            file.write_text(sl.trace("uniform8").to_json(), encoding="utf-8")
            self.assertEqual(sl.simulate(file, devices=4).step_time_ps,
                             sl.simulate("uniform8", devices=4).step_time_ps)
            file.write_text('{"format": "stageline-trace 1",\n "name": }', encoding="utf-8")
            with self.assertRaises(sl.TraceError) as caught:
                sl.trace(file)
            self.assertEqual(caught.exception.file, str(file))
            self.assertEqual(caught.exception.line, 2)

    def test_what_is_refused(self):
        for settings, words in (
                ({"devises": 4}, 'did you mean "devices"'),
                ({"devices": "4"}, "devices: "),
                ({"jitter": 0.05}, "^jitter: this is no setting.* sweep"),
                ({"why": True}, r"^why: .*\.waterfall"),
                ({"batch": 4}, "^batch: .*profile_batch"),
                ({"devices": [2, 4]}, "compare takes several"),
                ({"schedule": "1f1b,gpipe"}, "compare takes many"),
                ({"schedule": "1f1c"}, "1f1b"),
                ({"memory": -1}, "memory: a size is bytes"),
                ({"link": (1e9,)}, "link: a link is"),
                ({"schedule": 3}, "schedule: a name, or a function"),
                ({"program": sl.Program(), "schedule": "gpipe"}, "leave one of them out"),
                ({"slow": {"gpu9": 2}}, "gpu9")):
            with self.subTest(settings), self.assertRaisesRegex(sl.UsageError, words):
                sl.simulate("uniform8", **settings)
        self.assertTrue(issubclass(sl.UsageError, ValueError))

    def test_names_and_files_that_are_not_utf_8_are_refused(self):
        with tempfile.TemporaryDirectory() as scratch:
            name = os.path.join(scratch, os.fsdecode(b"caf\xe9.json"))
            for what, ask in (("trace", lambda: sl.trace(name)),
                              ("trace", lambda: sl.simulate(name, devices=2)),
                              ("trace", lambda: sl.sweep(name)),
                              ("name", lambda: sl.cluster(name)),
                              ("cluster", lambda: sl.simulate("uniform8", name)),
                              ("program", lambda: sl.program(name)),
                              ("program", lambda: sl.simulate("uniform8", program=name)),
                              ("program", lambda: sl.check(name)),
                              ("out", lambda: sl.sweep("uniform8", axes={"devices": [2]}, out=name)),
                              ("trace", lambda: sl.trace(3)),
                              ("trace", lambda: sl.sweep(3)),
                              ("program", lambda: sl.check(3))):
                with self.subTest(what), self.assertRaisesRegex(sl.UsageError, f"^{what}: "):
                    ask()
            file = pathlib.Path(scratch) / "program.txt"
            text = str(sl.simulate("uniform8", devices=2, microbatches=2).program)
            file.write_bytes(text.replace("0F0", "café").encode("latin-1"))
            for read in (sl.program, sl.check):
                with self.assertRaises(sl.Error):
                    read(file)
            file.write_bytes('{"format": "stageline-sweep 1", "é": 1}'.encode("latin-1"))
            with self.assertRaisesRegex(sl.UsageError, "not in UTF-8"):
                sl.sweep(file)

    def test_what_json_does_not_have_is_refused_by_its_name(self):
        for settings in ({"devices": float("nan")}, {"devices": float("inf")},
                         {"devices": -10**400}, {"devices": 10**5000}, {"devices": [2, 10**400]},
                         {"devices": object()}, {"partition": "\ud800"}, {"link": -10**400},
                         {"memory": float("inf")}, {"memory": 1e308}, {"host_link": (1e9, 10**400)},
                         {"pair_overlap": float("nan")}, {"partition": {"\ud800": 1}},
                         {"partition": {"name": object()}}):
            name, = settings
            with self.subTest(settings), self.assertRaisesRegex(sl.UsageError, f"^{name}: ") as caught:
                sl.simulate("uniform8", **settings)
            self.assertLess(len(str(caught.exception)), 200)
        with self.assertRaisesRegex(sl.UsageError, "^devices: "):
            sl.sweep("uniform8", axes={"devices": [float("nan")]})
        with self.assertRaisesRegex(sl.UsageError, "^forward: "):
            sl.uniform(forward=1e308)

    def test_each_flag_of_the_command_is_a_setting_or_says_what_stands_for_it(self):
        command = os.environ.get("STAGELINE_COMMAND")
        if not command:
            self.skipTest("STAGELINE_COMMAND names no command of this build")
        for word, ask in (("simulate", sl.simulate), ("compare", sl.compare)):
            said = subprocess.run([command, word, "--help", "all"], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout
            flags = re.findall(r"^  (?:-h,)?--([a-z-]+)", said, re.MULTILINE)
            self.assertGreater(len(flags), 40)
            for flag in set(flags) - {"help"}:
                with self.subTest(word, flag=flag):
                    try:
                        ask("uniform8", **{flag.replace("-", "_"): 1})
                    except sl.UsageError as error:
                        self.assertNotIn("known key", str(error))

    def test_the_docstrings_have_each_setting_with_the_sentence_of_the_command(self):
        command = os.environ.get("STAGELINE_COMMAND")
        if not command:
            self.skipTest("STAGELINE_COMMAND names no command of this build")
        said = subprocess.run([command, "list", "--request-schema"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        named = {name: rule["description"] for name, rule in json.loads(said)["properties"].items()}
        self.assertEqual({row["name"]: row["help"] for row in sl.settings() if row["call"]}, named)
        for call in (sl.simulate, sl.compare):
            own = {*inspect.signature(call).parameters, "schedule", "schedules", "program", "timeline"}
            for name in set(named) - own - ({"within"} if call is sl.simulate else set()):
                self.assertIn(f"\n        {name}: {named[name]}\n", call.__doc__)
        for row in sl.settings():
            self.assertTrue(row["sweep"] or row["call"], row["name"])
            if row["sweep"] and row["name"] not in ("trace", "cluster"):
                self.assertIn(f"\n        {row['name']}: {row['help']}\n", sl.sweep.__doc__)

    def test_numbers_of_other_kinds(self):
        self.assertEqual(sl.simulate("uniform8", devices=2, zero=1).json(),
                         sl.simulate("uniform8", devices=2, zero="1").json())
        for within in (0.05, "5%"):
            one, other = (sl.compare("uniform8", devices=4, microbatches=8, within=value)
                          for value in (within, "5%"))
            self.assertEqual(one.sentences, other.sentences)
        try:
            import numpy as np
        except ImportError:
            self.skipTest("there is no numpy")
        self.assertEqual(sl.simulate("uniform8", devices=np.array(4), all_pipelines=np.bool_(False),
                                     memory=np.float32(8e9)).json(),
                         sl.simulate("uniform8", devices=4, memory=8e9).json())
        self.assertEqual(sl.simulate("uniform8", devices=4).svg(panels="timeline"),
                         sl.simulate("uniform8", devices=4).svg(panels=["timeline"]))

    def test_what_is_of_the_wrong_type_or_empty_is_refused_by_its_name(self):
        sweep = {"axes": {"devices": [2]}}
        for name, ask in (
                ("cluster", lambda: sl.simulate("uniform8", "")),
                ("name", lambda: sl.cluster("")),
                ("trace", lambda: sl.trace("")),
                ("calibration", lambda: sl.simulate("uniform8", calibration="")),
                ("calibration", lambda: sl.sweep("uniform8", calibration="", **sweep)),
                ("program", lambda: sl.simulate("uniform8", program=sl.Program())),
                ("microbatch_size", lambda: sl.trace("uniform8", microbatch_size=1.5)),
                ("layers", lambda: sl.uniform(layers=float("nan"))),
                ("lists", lambda: sl.scheduler(3)),
                ("schedules", lambda: sl.compare("uniform8", schedules=[])),
                ("schedules", lambda: sl.compare("uniform8", schedules="")),
                ("schedule", lambda: sl.compare("uniform8", schedules=3)),
                ("schedules", lambda: sl.phase("uniform8", x="devices=2..4", y="link=1GB/s..2GB/s",
                                               schedules=[])),
                ("threads", lambda: sl.phase("uniform8", x="devices=2..4", y="link=1GB/s..2GB/s",
                                             threads="x")),
                ("axes", lambda: sl.sweep("uniform8", axes=["devices"])),
                ("axes", lambda: sl.sweep("uniform8", axes={"\ud800": [1]})),
                ("axes", lambda: sl.sweep("uniform8", axes={3: [1]})),
                ("devices", lambda: sl.sweep("uniform8", axes={"devices": "\ud800"})),
                ("x", lambda: sl.phase("uniform8", x={"\ud800": [1]}, y="link=1GB/s..2GB/s")),
                ("settings", lambda: sl.simulate("uniform8", **{"\ud800": 1})),
                ("devices", lambda: sl.compare("uniform8", devices=[])),
                ("program", lambda: sl.program("\ud800\n")),
                ("program", lambda: sl.check("\ud800\n")),
                ("out", lambda: sl.sweep("uniform8", out="", **sweep)),
                ("chunk", lambda: sl.sweep("uniform8", chunk=object(), **sweep)),
                ("threads", lambda: sl.sweep("uniform8", threads=1.5, **sweep)),
                ("trace", lambda: sl.sweep({"axes": object()}))):
            with self.subTest(name), self.assertRaisesRegex(sl.UsageError, f"^{name}: "):
                ask()

    def test_what_if_in_words_of_python(self):
        self.assertEqual(sl.simulate("uniform8", devices=4, slow={"gpu1": 1.5}).json(),
                         sl.simulate("uniform8", devices=4, slow="gpu1:1.5").json())


    def test_clusters(self):
        self.assertEqual(len(sl.cluster("h100x8*4").devices), 32)
        self.assertEqual(sl.cluster(link="1GB/s").devices, [])
        with self.assertRaisesRegex(sl.UsageError, 'did you mean "h100x8"'):
            sl.cluster("h100x9")
        for name in sl.bundled_clusters():
            self.assertTrue(sl.cluster(name).devices, name)
        for name in sl.bundled_traces():
            self.assertGreater(len(sl.trace(name)), 0)


class FromArrays(unittest.TestCase):
    def setUp(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("there is no numpy")
        self.np = numpy

    def test_as_a_uniform_model(self):
        np = self.np
        mine = sl.from_arrays(np.full(8, 1e-3), np.full(8, 1e-3), np.full(8, 1e-3), weights=4e6,
                              output=1e6, stash=1e6)
        uniform = sl.uniform(layers=8)
        for name in ("forward", "input_grad", "weight_grad", "backward", "weights", "output",
                     "stash"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(uniform, name), name)
        for schedule in ("1f1b", "zb_h1", "gpipe"):
            one = sl.simulate(mine, devices=4, microbatches=8, schedule=schedule, link="1GB/s")
            two = sl.simulate(uniform, devices=4, microbatches=8, schedule=schedule, link="1GB/s")
            self.assertEqual(one.step_time_ps, two.step_time_ps)

    def test_what_is_refused(self):
        np = self.np
        for arrays, words in (
                ({"forward": np.ones(3), "weights": np.ones(2)}, "weights: 2 values for 3 layers"),
                ({"forward": [1, float("nan")]}, r"forward\[1\]"),
                ({"forward": [1, -1]}, r"forward\[1\] is -1"),
                ({"forward": [1], "stash": [-1]}, r"stash\[0\]"),
                ({"forward": []}, "at least one layer"),
                ({"forward": [1, 1], "names": ["a"]}, "names: 1 for 2"),
                ({"forward": [1j]}, "^forward: numbers"),
                ({"forward": ["a"]}, "^forward: numbers"),
                ({"forward": [[1], [1, 2]]}, "^forward: numbers"),
                ({"forward": np.ones((2, 2))}, "^forward: one value a layer"),
                ({"forward": [1, 1], "backward": [None, 1j]}, "^backward: numbers"),
                ({"forward": [1], "names": [1]}, "^names: a text"),
                ({"forward": [1], "names": 1}, "^names: a list"),
                ({"forward": [1], "name": 1}, "^name: a text"),
                ({"forward": [1], "batch": 1.5}, "^batch: a whole number")):
            with self.subTest(arrays), self.assertRaisesRegex(sl.UsageError, words):
                sl.from_arrays(**arrays)

    def test_columns_outlive_the_model(self):
        model = sl.trace("resnet50-cpu")
        forward, expected = model.forward, model.forward.tolist()
        del model
        self.assertEqual(forward.tolist(), expected)
