#!/usr/bin/env python3
"""The command stageline-study, with a stand-in for the trainer that hands out the kept runs.

study.py STAGELINE_STUDY KEPT_EVIDENCE
"""
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STAND_IN = '''#!{python}
# Answers as stageline-train would, from the kept runs; notes each call.
import gzip, json, os, signal, sys, time
from pathlib import Path
here = Path(__file__).parent
arguments = sys.argv[1:]
assert arguments[-3:-1] == ["--quiet", "--json"], arguments
asked = "stageline-train " + " ".join(arguments[:-3])
with open(here / "calls", "a") as calls:
    calls.write(asked + "\\n")
how = (here / "how").read_text() if (here / "how").exists() else ""
if how and how in asked:
    sys.exit(3)
# It can be ended as if a user had started it.
assert not signal.pthread_sigmask(signal.SIG_BLOCK, []), "signals are blocked"
assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, "SIGTERM is not at its default"
ignored = (here / "ignored").exists()
assert (signal.getsignal(signal.SIGINT) == signal.SIG_IGN) == ignored, "SIGINT is not as it was"
if (here / "deaf").exists():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (here / "deaf").write_text(str(os.getpid()))
    time.sleep(600)
if (here / "slow").exists():
    time.sleep(0.3)
runs = json.loads(gzip.decompress(Path({kept!r}).read_bytes()))["runs"]
log = next(run["log"] for run in runs if run["log"]["command"] == asked)
ends, losses = [], []
for one in log["evaluations"]:
    while len(ends) < one["step"]:
        ends.append(one["end_ps"])
        losses.append(1.5)
log |= {{"format": "stageline-training 1", "steps": {{"end_ps": ends, "loss": losses}}}}
Path(arguments[-1]).write_text(json.dumps(log))
sys.exit(0 if log["evaluations"][-1]["loss"] is not None else 1)
'''


def main():
    study, kept = (str(Path(one).resolve()) for one in sys.argv[1:3])
    failed = []

    def check(true, what):
        if not true:
            failed.append(what)
            print('failed:', what)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trainer = folder / 'stageline-train'
        trainer.write_text(STAND_IN.format(python=sys.executable, kept=kept))
        trainer.chmod(0o755)
        calls = folder / 'calls'
        out = folder / 'out'
        file = out / 'staleness.json.gz'
        base = [study, 'staleness', '--train', str(trainer), '--out', str(out), '--jobs', '1']
        small = base + ['--only', 'lenet5', '--seeds', '1']

        def run(command, ignored=()):
            def ignore():
                for number in ignored:
                    signal.signal(number, signal.SIG_IGN)

            calls.write_text('')
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=ignore)
            return done.returncode, done.stdout + done.stderr, calls.read_text().splitlines()

        def runs():
            return json.loads(gzip.decompress(file.read_bytes()))['runs']

        wanted = [one for one in json.loads(gzip.decompress(Path(kept).read_bytes()))['runs']
                  if one['net'] == 'lenet5' and one['log']['seed'] == 1]

        code, said, called = run(small)
        check(code == 0 and 'measurably worse' in said, f'a whole study: {code}, {said}')
        check(len(called) == len(wanted), f'{len(called)} runs made, wanted {len(wanted)}')
        check(runs() == wanted, 'the runs are not those that the trainer gave, copies and all')
        page = (out / 'staleness.md').read_text()
        check('10-stage measurably worse | LeNet-5' in page, 'the page has no finding')
        check((out / 'staleness-depth.svg').exists(), 'no figure was drawn')

        code, said, called = run(small)
        check(code == 0 and called == [], f'runs were made again: {called}')
        code, said, called = run(small + ['--fresh'])
        check(code == 0 and len(called) == len(wanted), '--fresh made not all again')

        # A run with other settings is none of this study; what is missing is made.
        text = gzip.decompress(file.read_bytes())
        file.write_bytes(gzip.compress(text.replace(b'--rate 0.005', b'--rate 0.5', 1)))
        code, said, called = run(small)
        check(code == 0 and len(called) == 1 and runs() == wanted, f'one run was to make: {called}')

        # A trainer that fails ends the study, with the command; what is done is kept.
        (folder / 'how').write_text('ppv:1,2,3 ')
        code, said, called = run(small + ['--fresh'])
        check(code == 2 and 'exit code 3: stageline-train lenet5-cpu' in said, f'{code}, {said}')
        # Even where whoever starts the study ignores how children end.
        code, said, called = run(small + ['--fresh'], [signal.SIGCHLD])
        check(code == 2 and 'exit code 3: stageline-train lenet5-cpu' in said, f'no SIGCHLD: {code}, {said}')
        (folder / 'how').unlink()
        check(len(runs()) == len(wanted), 'what was there is gone')

        # So does a signal; the same command goes on.
        file.unlink()
        (folder / 'slow').touch()
        calls.write_text('')
        process = subprocess.Popen(small, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while len(calls.read_text().splitlines()) < 4:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        check(process.returncode == 130 and 'goes on' in said, f'{process.returncode}, {said}')
        done = len(runs())
        check(2 <= done < len(wanted), f'{done} runs are kept')
        (folder / 'slow').unlink()
        code, said, called = run(small)
        check(code == 0 and len(called) == len(wanted) - done, f'{len(called)} runs made after {done}')
        check(runs() == wanted, 'the interrupted study has other runs')

        # What is ignored stays so in the trainer; a full standard error loses what is said there.
        (folder / 'ignored').touch()
        code, said, called = run(['bash', '-c', '"$0" "$@" 2>/dev/full', *small, '--fresh'], [signal.SIGINT])
        check(code == 0 and runs() == wanted, f'SIGINT ignored, standard error full: {code}, {said}')
        (folder / 'ignored').unlink()

        # A trainer that does not end when asked is killed.
        (folder / 'deaf').touch()
        process = subprocess.Popen(small + ['--fresh'], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while not (trainer_process := (folder / 'deaf').read_text()):
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=120)[1]
        check(process.returncode == 143 and 'goes on' in said, f'a deaf trainer: {process.returncode}, {said}')
        check(not Path('/proc', trainer_process).exists(), 'a deaf trainer was left')
        (folder / 'deaf').unlink()

        usual = {'--train': str(trainer), '--jobs': '1'}
        for flags, text in (({'--only': 'lenet'}, 'did you mean "lenet5"'),
                            ({'--train': str(folder / 'nothing')}, 'there is no program'),
                            ({'--jobs': '1000'}, 'this process may use')):
            flat = [word for pair in (usual | flags).items() for word in pair]
            code, said, called = run([study, 'staleness', '--out', str(out)] + flat)
            check(code == 2 and text in said and called == [], f'{flags}: {code}, {said}')
        for broken in (b'{', gzip.compress(b'{}')[:-4]):
            file.write_bytes(broken)
            code, said, called = run(small)
            check(code == 2 and 'staleness.json.gz' in said, f'a broken file: {code}, {said}')
        check(os.listdir(out) and not list(out.glob('*.tmp*')), 'something was left beside')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
