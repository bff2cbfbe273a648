"""Do NumPy, Arrow and pandas look at the engine's memory, and see what its JSON says?"""
import gc
import json
import unittest

import stageline as sl

try:
    import numpy as np
except ImportError:
    np = None
try:
    import pyarrow
except ImportError:
    pyarrow = None
try:
    import pandas
except ImportError:
    pandas = None


def asked():
    return sl.simulate("resnet50-cpu", schedule="zb_h1", devices=4, microbatches=8,
                       link="1GB/s,5us")


@unittest.skipIf(np is None, "there is no numpy")
class Arrays(unittest.TestCase):
    def test_no_copy(self):
        timeline = asked().timeline
        one, two = np.asarray(timeline), np.asarray(timeline)
        self.assertTrue(np.shares_memory(one, two))
        self.assertEqual(one.__array_interface__["data"][0],
                         timeline.__array_interface__["data"][0])
        self.assertFalse(one.flags.owndata)
        self.assertFalse(one.flags.writeable)
        self.assertTrue(np.shares_memory(one, timeline["start_ps"]))

    def test_lives_on(self):
        result = asked()
        starts, expected = result.timeline["start_ps"], result.timeline["start_ps"].tolist()
        del result
        gc.collect()
        pressure = [bytearray(1 << 16) for _ in range(100)]
        self.assertEqual(starts.tolist(), expected)
        self.assertEqual(len(pressure), 100)

    def test_as_the_json(self):
        result = asked()
        said = json.loads(result.json(timeline=True))["timeline"]
        rows = result.timeline.array
        names = result.timeline.devices
        mine = {(names[row["device"]], f"{row['stage']}{sl.op_kinds[row['kind']]}"
                 f"{row['microbatch']}", int(row["start_ps"]), int(row["end_ps"]))
                for row in rows}
        theirs = {(one["device"], one["op"].split(".")[0], one["start_ps"], one["end_ps"])
                  for one in said}
        self.assertEqual(len(rows), len(said))
        self.assertEqual(mine, theirs)

    def test_adds_up(self):
        result = asked()
        rows = result.timeline.array
        self.assertEqual(rows["end_ps"].max(), result.makespan_ps)
        compute = rows[rows["lane"] == sl.lane_kinds.index("compute")]
        for device, one in enumerate(result.idle):
            mine = compute[compute["device"] == device]
            busy = (mine["end_ps"] - mine["start_ps"]).sum() / 1e12
            self.assertAlmostEqual(busy, one["busy"])


@unittest.skipIf(pyarrow is None or np is None, "there is no pyarrow")
class Arrow(unittest.TestCase):
    def test_columns(self):
        timeline = asked().timeline
        table = pyarrow.table(timeline)
        table.validate(full=True)
        rows = timeline.array
        for name in ("start_ps", "end_ps", "microbatch", "stage", "part", "overlapped"):
            np.testing.assert_array_equal(table[name].to_numpy(), rows[name], name)
        self.assertEqual(table["kind"].to_pylist(), [sl.op_kinds[kind] for kind in rows["kind"]])
        self.assertEqual(table["lane"].to_pylist(), [sl.lane_kinds[lane] for lane in rows["lane"]])
        self.assertEqual(table["device"].to_pylist(),
                         [timeline.devices[device] for device in rows["device"]])

    def test_lives_on_and_is_given_back(self):
        timeline = asked().timeline
        expected = pyarrow.table(timeline).to_pydict()
        table = pyarrow.table(timeline)
        capsule = timeline.__arrow_c_stream__()  # nobody takes it
        del timeline, capsule
        gc.collect()
        self.assertEqual(table.to_pydict(), expected)
        before = pyarrow.total_allocated_bytes()
        for _ in range(20):
            pyarrow.table(asked().timeline)
        self.assertEqual(pyarrow.total_allocated_bytes(), before)

    @unittest.skipIf(pandas is None, "there is no pandas")
    def test_pandas(self):
        timeline = asked().timeline
        frame = timeline.to_pandas()
        self.assertEqual(frame["start_ps"].tolist(), timeline["start_ps"].tolist())
        busiest = frame[frame["lane"] == "compute"].groupby("device", observed=True).size()
        self.assertEqual(len(busiest), 4)
