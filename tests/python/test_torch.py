"""Does measuring a PyTorch model give a trace that can be simulated?"""
import tempfile
import unittest

import stageline as sl

try:
    import numpy
    import torch
except ImportError as error:
    torch, missing = None, str(error)
else:
    missing = ""


@unittest.skipIf(torch is None, f"torch cannot be imported: {missing}")
class Measured(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(),
            torch.nn.Linear(8 * 16 * 16, 10, bias=False))
        self.batch = torch.randn(4, 3, 16, 16)

    def measure(self, module, **settings):
        import stageline.torch
        return stageline.torch.measure(module, self.batch, rounds=3, warm_up=1, **settings)

    def test_sequential(self):
        before = [one.detach().clone() for one in self.net.parameters()]
        model = self.measure(self.net)
        self.assertEqual(model.layers, ["0.conv2d", "1.relu", "2.flatten", "3.linear"])
        self.assertEqual(model.batch, 4)
        self.assertEqual(model.origin, "measured")
        self.assertTrue((model.forward > 0).all())
        # nothing wants the gradient of the batch, and what has no weights has no W
        self.assertEqual(model.input_grad[0], 0)
        self.assertTrue((model.input_grad[1:] > 0).all())
        self.assertEqual((model.weight_grad > 0).tolist(), [True, False, False, True])
        self.assertEqual(model.weights.tolist(), [4 * (3 * 8 * 9 + 8), 0, 0, 4 * 2048 * 10])
        self.assertEqual(model.output.tolist(), [4 * 4 * 2048] * 3 + [4 * 4 * 10])
        # the batch, and what ReLU returns, which Linear saves too
        self.assertEqual(model.stash.tolist(), [4 * 4 * 768, 0, 0, 0])
        self.assertEqual(model.stash_input_grad.tolist(), [0, 4 * 4 * 2048, 0, 0])
        for one, was in zip(self.net.parameters(), before):
            self.assertTrue(torch.equal(one, was))
            self.assertIsNone(one.grad)
        result = sl.simulate(model, devices=2, microbatches=4)
        self.assertGreater(result.step_time_ps, 0)

    def test_list_and_optimizer(self):
        modules = list(self.net.children())
        plain = self.measure(modules, optimizer=lambda ps: torch.optim.SGD(ps, lr=0.1))
        adam = self.measure(modules, optimizer=lambda ps: torch.optim.Adam(ps))
        self.assertNotIn("optimizer_state_bytes", plain.to_json().replace(
            '"optimizer_state_bytes": 0', ""))
        self.assertIn(f'"optimizer_state_bytes": {2 * 4 * 2048 * 10}', adam.to_json())

    def test_stages_of_pipelining(self):
        try:
            from torch.distributed.pipelining import PipelineStage, SplitPoint, pipeline
        except ImportError as error:
            self.skipTest(f"this PyTorch has no pipelining: {error}")
        pipe = pipeline(self.net, mb_args=(self.batch,), split_spec={"3": SplitPoint.BEGINNING})
        whole = self.measure(pipe)
        self.assertEqual([name.split(".")[0] for name in whole.layers], ["stage0", "stage1"])
        self.assertEqual(whole.weights.tolist(), [4 * (3 * 8 * 9 + 8), 4 * 2048 * 10])
        with tempfile.TemporaryDirectory() as place:
            torch.distributed.init_process_group(
                "gloo", init_method=f"file://{place}/group", rank=0, world_size=1)
            self.addCleanup(torch.distributed.destroy_process_group)
            stages = [PipelineStage(pipe.get_stage_module(i), i, 2, torch.device("cpu"))
                      for i in (1, 0)]
        model = self.measure(stages)
        self.assertEqual(model.layers, whole.layers)
        self.assertEqual(model.output.tolist(), whole.output.tolist())
        self.assertGreater(sl.simulate(model, devices=2, microbatches=4).step_time_ps, 0)
        with self.assertRaisesRegex(sl.UsageError, "not all stages"):
            self.measure(stages[:1])

    def test_refused(self):
        for module, words in ((torch.nn.ReLU(), "module: "), ([], "no layer"),
                              ([torch.nn.Flatten(), torch.nn.LSTM(768, 4)], "returns tuple")):
            with self.subTest(words), self.assertRaisesRegex(sl.UsageError, words):
                self.measure(module)
