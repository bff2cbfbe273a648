"""Do the properties of a result say what its JSON and a sweep say?"""
import json
import os
import subprocess
import unittest

import stageline as sl

EQUAL = "uniform:layers=8,forward=1ms,weights=1MB,output=1MB,stash=2MB,batch=4"
CASES = [dict(trace=EQUAL, devices=4, microbatches=8, link="2GB/s,20us", memory="60MB", schedule=schedule)
         for schedule in ("1f1b", "zb_h1", "gpipe:recompute=always", "pipedream")]
CASES += [dict(trace="model:llama3-8b@h100", cluster="h100x8", tp=2, pp=4, microbatches=8, precision="bf16",
               schedule=schedule) for schedule in ("1f1b", "interleaved_1f1b")]
RANGE = ("step_low", "step_high", "step_range_of")  # of a language model priced for a device alone
FITS = {"yes": True, "no": False, "unknown": None}


def figures():
    """Rows of the table: key, what it is, sweep, property; "" where there is none."""
    table = subprocess.run([os.environ["STAGELINE_COMMAND"], "list", "--figures"], check=True,
                           capture_output=True, text=True).stdout
    rows = [[cell.strip("| `–") for cell in line.split(" | ")] for line in table.splitlines()[2:]]
    return [(key, kind, sweep, of) for key, _, kind, _, sweep, of in rows]


@unittest.skipUnless(os.environ.get("STAGELINE_COMMAND"), "STAGELINE_COMMAND names no command of this build")
class Figures(unittest.TestCase):
    def test_properties_and_keys(self):
        compared = 0
        for case in CASES:
            result = sl.simulate(**case)
            said = json.loads(result.json())
            for key, kind, _, of in figures():
                if not key or not of or (key == "cut" and key not in said):
                    continue
                with self.subTest(schedule=case["schedule"], figure=key):
                    if key in RANGE and not case["trace"].startswith("model:"):
                        self.assertIsNone(getattr(result, of))
                        self.assertFalse(any(name.startswith(key) for name in said))
                    elif kind == "a time":
                        self.assertEqual(getattr(result, of), said[key + "_s"])
                        self.assertEqual(getattr(result, of + "_ps"), said[key + "_ps"])
                    else:
                        self.assertEqual(getattr(result, of), FITS[said[key]] if key == "fits" else said[key])
                    compared += 1
        self.assertGreater(compared, 10 * len(CASES))

    def test_properties_and_sweeps(self):
        for case in CASES:
            result = sl.simulate(**case)
            row = sl.sweep(**{**case, "schedule": None, "axes": {"schedule": [case["schedule"]]}})[0]
            for _, kind, sweep, of in figures():
                if not sweep or not of:
                    continue
                with self.subTest(schedule=case["schedule"], figure=sweep):
                    value = getattr(result, of + "_ps" if kind == "a time" else of)
                    self.assertEqual(FITS[row[sweep]] if of == "fits" else row[sweep], value)
            self.assertEqual(row["peak_bytes"], max(one["peak"] for one in result.memory))
            self.assertEqual(result.peak_memory, row["peak_bytes"])


if __name__ == "__main__":
    unittest.main()
