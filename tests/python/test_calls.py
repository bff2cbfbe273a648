"""Do long calls end at a signal, and let other threads run?"""
import itertools
import signal
import threading
import time
import unittest

import stageline as sl

# Minutes of work, in parts of milliseconds.
LONG = {"trace": "resnet50-cpu", "devices": 8, "microbatches": 64,
        "partition": "simulated:most=100000"}


class Rung(Exception):
    pass


class Calls(unittest.TestCase):
    def ring(self, seconds):
        def handler(number, frame):
            raise Rung()
        before = signal.signal(signal.SIGALRM, handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def test_a_signal_ends_simulate(self):
        self.ring(0.3)
        with self.assertRaises(Rung):
            sl.simulate(**LONG)
        self.assertEqual(sl.simulate("uniform8", devices=4, microbatches=8).devices, 4)

    def test_a_signal_ends_compare_on_all_its_threads(self):
        threads = threading.active_count()
        self.ring(0.3)
        with self.assertRaises(Rung):
            sl.compare(**LONG)
        self.assertEqual(threading.active_count(), threads)

    def test_a_signal_ends_a_list_of_ops(self):
        self.ring(0.3)
        with self.assertRaises(Rung):
            sl.simulate("uniform8", schedule=lambda problem: [itertools.repeat("0F0")] * 2,
                        devices=2, microbatches=1 << 23)

    def test_interrupt(self):
        # What runs in the background of a shell was told to ignore it.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            sl.simulate(**LONG)
        timer.join()

    def test_other_threads_run(self):
        self.ring(0)  # no timer: the other thread rings

        def work():
            for _ in range(20):
                time.sleep(0.001)
            signal.raise_signal(signal.SIGALRM)
        thread = threading.Thread(target=work)
        thread.start()
        # With the lock held, the other thread could not ring before the call ends by itself.
        with self.assertRaises(Rung):
            sl.simulate(**LONG)
        thread.join()

    def test_threads_share_a_result(self):
        result = sl.simulate("uniform8", devices=4, microbatches=8)
        seen = []
        threads = [threading.Thread(target=lambda: seen.append((result.svg(), result.timeline)))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(seen), 4)
        self.assertEqual(len({svg for svg, _ in seen}), 1)
