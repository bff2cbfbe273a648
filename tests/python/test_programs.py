"""Do programs, and schedules written in Python, go through the engine's checks?"""
import itertools
import os
import pathlib
import tempfile
import unittest

import stageline as sl


def gpipe(problem):
    numbers = range(problem.microbatches)
    return [[(s, "F", m) for m in numbers] + [f"{s}B{m}" for m in reversed(numbers)]
            for s in range(problem.stages)]


def one_f_one_b(problem):
    lists = []
    for s in range(problem.stages):
        warm = min(problem.stages - s, problem.microbatches)
        ops = [(s, "F", m) for m in range(warm)]
        for m in range(problem.microbatches):
            ops.append((s, "B", m))
            if m + warm < problem.microbatches:
                ops.append((s, "F", m + warm))
        lists.append(ops)
    return lists


class Programs(unittest.TestCase):
    def setUp(self):
        self.result = sl.simulate("resnet50-cpu", devices=4, microbatches=8)
        self.text = str(self.result.program)

    def test_runs_again(self):
        program = sl.Program.parse(self.text)
        self.assertEqual(program, self.result.program)
        for again in (program, self.text):
            self.assertEqual(sl.simulate("resnet50-cpu", program=again).step_time_ps,
                             self.result.step_time_ps)

    def test_what_can_be_changed_has_no_hash(self):
        with self.assertRaises(TypeError):
            hash(self.result.program)

    def test_edited(self):
        last = [" ".join(ops) for ops in self.result.program.ops][-1]
        self.assertIn("3F0 3B0 3F1 3B1", last)
        slower = self.text.replace("3F0 3B0 3F1 3B1", "3F0 3F1 3B0 3B1")
        self.assertNotEqual(slower, self.text)
        edited = sl.simulate("resnet50-cpu", program=slower)
        self.assertGreater(edited.step_time_ps, self.result.step_time_ps)

    def test_errors_have_places(self):
        with self.assertRaises(sl.ProgramError) as caught:
            sl.Program.parse(self.text.replace("0F3", "0X3", 1))
        lines = self.text.splitlines()
        line = next(i for i, one in enumerate(lines) if "0F3" in one)
        self.assertEqual(caught.exception.line, line + 1)
        self.assertEqual(caught.exception.column, lines[line].index("0F3") + 1)
        with self.assertRaises(sl.ProgramError) as caught:
            sl.Program.parse(self.text.replace(" 0F3", "", 1)).validate()
        self.assertIn("0F3", str(caught.exception))

    def test_a_name_is_what_its_text_can_say(self):
        program = sl.Program.parse(self.text)
        for name in ("a\nmicrobatches: 9", "a\nsteps: 2", "a # b", " a", "a\t", "a\r"):
            with self.subTest(name), self.assertRaisesRegex(sl.UsageError, "^schedule: "):
                program.schedule = name
            with self.subTest(name), self.assertRaisesRegex(sl.UsageError, "^schedule: "):
                sl.scheduler(gpipe, name=name)
        for name in ("", "mine: é 1"):
            program.schedule = name
            self.assertEqual(sl.Program.parse(str(program)).schedule, name)

    def test_deadlock(self):
        def stuck(problem):
            return [["0B0", "0F0"], ["1F0", "1B0"]]
        with self.assertRaises(sl.Deadlock) as caught:
            sl.simulate("uniform8", schedule=stuck, devices=2, microbatches=1)
        self.assertTrue(any(op.startswith("0B0") for op in caught.exception.cycle))
        self.assertTrue(any(op.startswith("0F0") for op in caught.exception.cycle))
        self.assertIsInstance(caught.exception, sl.ProgramError)


    def test_named_as_a_schedule(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.slp")
            own = "".join(line for line in self.text.splitlines(keepends=True)
                          if not line.startswith("schedule:"))
            with open(path, "w", encoding="utf-8") as file:
                file.write(own)
            program = sl.Program.parse(self.text)
            program.schedule = "edited"
            for one, name in ((path, "mine"), (pathlib.Path(path), "mine"), (program, "edited")):
                run = sl.simulate("resnet50-cpu", schedule=one)
                self.assertEqual((run.schedule, run.step_time_ps),
                                 (name, self.result.step_time_ps))
            table = sl.compare("resnet50-cpu", schedules=["gpipe", path, program])
            self.assertEqual({row["schedule"] for row in table.rows}, {"gpipe", "mine", "edited"})
            self.assertEqual(table["mine"].step_time_ps, self.result.step_time_ps)
            self.assertEqual(table["gpipe"].microbatches, self.result.microbatches)
            self.assertEqual(sl.compare("resnet50-cpu", schedules=program)["edited"].devices,
                             self.result.devices)
            with self.assertRaisesRegex(sl.UsageError, "is a program of .* micro-batches"):
                sl.simulate("resnet50-cpu", schedule=path, microbatches=3)
            swept = sl.sweep("resnet50-cpu", axes={"schedule": [path]})
            self.assertEqual(swept[0]["step_ps"], self.result.step_time_ps)

    def test_equal_numbers_are_no_contradiction(self):
        program = sl.Program.parse(self.text)
        run = sl.simulate("resnet50-cpu", program=program, devices=self.result.devices,
                          microbatches=self.result.microbatches)
        self.assertEqual(run.step_time_ps, self.result.step_time_ps)

    def test_check(self):
        self.assertEqual([one for one in sl.check(self.result.program)
                          if one["severity"] == "error"], [])
        lines = self.text.replace("1F3", "1F2", 1).splitlines()
        found = [one for one in sl.check("\n".join(lines) + "\n") if one["severity"] == "error"]
        self.assertEqual({one["rule"] for one in found} & {"done-twice", "missing"},
                         {"done-twice", "missing"})
        twice = next(one for one in found if one["rule"] == "done-twice")
        self.assertIn("1F2", lines[twice["line"] - 1])
        self.assertEqual(twice["device"], 1)


class Schedulers(unittest.TestCase):
    def test_as_the_built_in_ones(self):
        for mine, name in ((gpipe, "gpipe:reverse=yes"), (one_f_one_b, "1f1b")):
            for devices, microbatches in ((2, 2), (4, 8), (3, 7), (4, 1)):
                with self.subTest(name, devices=devices, microbatches=microbatches):
                    settings = {"devices": devices, "microbatches": microbatches,
                                "link": "1GB/s,5us"}
                    one = sl.simulate("resnet50-cpu", schedule=mine, **settings)
                    two = sl.simulate("resnet50-cpu", schedule=name, **settings)
                    self.assertEqual(one.step_time_ps, two.step_time_ps)
                    self.assertEqual(one.peak_memory, two.peak_memory)
                    self.assertEqual(one.schedule, mine.__name__)

    def test_what_it_is_given(self):
        seen = []

        @sl.scheduler(like="zb_v", name="v")
        def looked_at(problem):
            seen.append(problem)
            return sl.simulate("uniform8", schedule="zb_v", devices=2, microbatches=4).program
        result = sl.simulate("uniform8", schedule=looked_at, devices=2, microbatches=4,
                             link="1GB/s,5us", memory="8GB")
        problem = seen[0]
        self.assertEqual((problem.stages, problem.devices, problem.microbatches), (4, 2, 4))
        self.assertEqual(problem.placement, [0, 1, 1, 0])
        self.assertEqual([cost.forward for cost in problem.costs], [0.002] * 4)
        self.assertEqual(problem.memory, [8 * 10**9] * 2)
        self.assertEqual(problem.message_time(0, 1), 0.001005)
        self.assertEqual(problem.message_time(1, 2), 0)
        self.assertEqual(result.schedule, "zb_v")

    def test_wrong_lists(self):
        for lists, words in (
                (lambda problem: [["0F0", "0B0"]], "1 lists of ops for 2 devices"),
                (lambda problem: [[], [], []], "more lists of ops for 2 devices"),
                (lambda problem: [["0F0", "0B0"], ["1F0"]], "1B0|stage 1"),
                (lambda problem: [["0F0", "nonsense"], []], "nonsense at position 1 of device 0"),
                (lambda problem: [[(0, "F", 0), (0, "B", -1)], []], "position 1 of device 0"),
                (lambda problem: [[(0, "F", 2.0)], []], r"\(0, 'F', 2.0\) at position 0"),
                (lambda problem: [[(0, 1, 0)], []], r"\(0, 1, 0\) at position 0"),
                (lambda problem: [[(10**30, "F", 0)], []], "'F', 0\\) at position 0"),
                (lambda problem: [[(0, "F")], []], "position 0 of device 0"),
                (lambda problem: [["\ud800"], []], r"ud800' at position 0"),
                (lambda problem: [[(0, "\ud800", 0)], []], "position 0 of device 0"),
                (lambda problem: "\ud800", "UTF-8"),
                (lambda problem: [itertools.repeat("0F0"), []], "list of device 0 has more than")):
            with self.subTest(words), self.assertRaisesRegex(sl.ProgramError, words):
                sl.simulate("uniform8", schedule=lists, devices=2, microbatches=1)

    def test_its_own_errors_come_through(self):
        def broken(problem):
            return 1 // 0
        with self.assertRaises(ZeroDivisionError):
            sl.simulate("uniform8", schedule=broken, devices=2)
        with self.assertRaises(TypeError):
            sl.simulate("uniform8", schedule=lambda problem: 3, devices=2)
