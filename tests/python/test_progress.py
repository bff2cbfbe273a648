"""Is it shown how far a long call is, where somebody looks, and nowhere else?"""
import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import unittest
from unittest import mock

import stageline as sl

try:
    import tqdm
except ImportError:
    tqdm = None

ASKED = {"trace": "uniform8", "axes": {"devices": [2, 4], "microbatches": range(8, 72)}}
ROWS = 2 * 64


class File(io.StringIO):
    """A standard error that is a terminal, or none."""

    def __init__(self, terminal=False):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


def shown(progress, terminal=False, with_tqdm=False, **more):
    """What a sweep writes to standard error."""
    hidden = {} if with_tqdm else {"tqdm": None, "tqdm.auto": None}
    with mock.patch("sys.stderr", File(terminal)) as file, mock.patch.dict(sys.modules, hidden):
        sl.sweep(**ASKED, progress=progress, **more)
    return file.getvalue()


class Bars(unittest.TestCase):
    def test_nothing_where_nobody_looks(self):
        self.assertEqual(shown(None), "")
        self.assertEqual(shown(False), "")
        self.assertEqual(shown(False, terminal=True), "")
        self.assertEqual(shown(None, terminal=True), "")  # it is done before one could read it

    def test_a_long_call_on_a_terminal(self):
        with mock.patch("stageline._progress._PATIENCE", 0):
            self.assertIn(f"100 % · {ROWS} of {ROWS} scenarios", shown(None, terminal=True))
            self.assertEqual(shown(None), "")

    def test_a_line(self):
        text = shown(True, terminal=True)
        self.assertRegex(text, rf"^\r.*\r100 % · {ROWS} of {ROWS} scenarios · .*/s · 0 s left *\n$")
        in_file = shown(True)
        self.assertNotIn("\r", in_file)
        self.assertIn(f"100 % · {ROWS} of {ROWS} scenarios", in_file.splitlines()[-1])

    @unittest.skipIf(tqdm is None, "there is no tqdm")
    def test_a_bar_of_tqdm(self):
        for terminal in (True, False):
            text = shown(True, terminal=terminal, with_tqdm=True)
            self.assertRegex(text, rf"100%\|#+\| {ROWS}/{ROWS} .* scenarios/s\]")

    def test_a_function_is_called(self):
        done = []
        self.assertEqual(shown(lambda rows, wanted: done.append((rows, wanted)), terminal=True), "")
        self.assertEqual(done[-1], (ROWS, ROWS))
        self.assertEqual(sorted(set(done)), done)

    def test_what_a_function_raises_ends_the_call(self):
        def stop(rows, wanted):
            raise InterruptedError("enough")
        with self.assertRaises(InterruptedError):
            shown(stop)
        with self.assertRaises(InterruptedError):
            sl.compare("uniform8", devices=4, progress=stop)
        with self.assertRaisesRegex(sl.UsageError, "progress: True, False, or a function"):
            shown("bar")

    def test_schedules_and_cells(self):
        done = []
        table = sl.compare("uniform8", devices=4, progress=lambda *now: done.append(now))
        self.assertEqual(done[-1], (len(table), len(table)))
        done.clear()
        found = sl.phase("uniform8", devices=4, schedules=["1f1b", "gpipe"], y={"memory": ["1GB"]},
                         x={"microbatches": range(4, 20)}, progress=lambda *now: done.append(now))
        self.assertEqual(done[-1], (found.simulated, found.simulated))

    def test_no_bar_where_standard_error_is_closed(self):
        for how in ("sys.stderr.close()", "sys.stderr = None"):
            for progress in ("None", "True"):
                call = f"import sys, stageline as sl\n{how}\n" \
                       f"sl.compare('uniform8', devices=4, schedules='1f1b', progress={progress})\n"
                done = subprocess.run([sys.executable, "-c", call], check=False)
                self.assertEqual(done.returncode, 0, call)

    def test_on_a_real_terminal(self):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        call = f"import stageline as sl\nsl.sweep(**{ASKED!r}, progress=True)\n"
        done = subprocess.run([sys.executable, "-c", call], stderr=theirs, check=False)
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # all has been read
                break
            if not part:
                break
            text += part
        os.close(ours)
        self.assertEqual(done.returncode, 0)
        self.assertTrue(re.search(r"100 ?%", text.decode()), text)


if __name__ == "__main__":
    unittest.main()
