"""How far long calls are: a bar of tqdm where it is installed, else a line."""
from __future__ import annotations

import contextlib
import sys
import time
import warnings
from typing import Any, Callable, Iterator, Union

from stageline._amounts import shown
from stageline._errors import UsageError

Report = Callable[[int, int], Any]
Progress = Union[bool, Report, None]

_PATIENCE = 1.5  # seconds before a bar that nobody asked for
_PAUSE = 0.2  # between two lines of a terminal
_LONG_PAUSE = 10.0  # where lines stay, as in a file


def _open() -> bool:
    return sys.stderr is not None and not getattr(sys.stderr, "closed", False)


def _terminal() -> bool:
    return _open() and sys.stderr.isatty()


def _notebook() -> bool:
    return type(sys.stderr).__module__.startswith("ipykernel")


def _in_short(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class _Line:
    """What the command shows, where there is no tqdm."""

    def __init__(self, unit: str, begun: float) -> None:
        self._unit = unit
        self._begun = begun
        self._shown = -_LONG_PAUSE
        self._same_line = _terminal() or _notebook()

    def update(self, done: int, wanted: int) -> None:
        now = time.monotonic()
        pause = _PAUSE if self._same_line else _LONG_PAUSE
        if done < wanted and now - self._shown < pause:
            return
        self._shown = now
        rate = done / max(now - self._begun, 1e-3)
        text = (f"{100 * done / max(wanted, 1):.0f} % · {done} of {wanted} {self._unit} · "
                f"{rate:.3g}/s · {_in_short((wanted - done) / rate if done else 0)} left")
        sys.stderr.write(f"\r{text:<70}" if self._same_line else text + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        if self._same_line:
            sys.stderr.write("\n")


class _Tqdm:
    def __init__(self, tqdm: Any, unit: str, begun: float, wanted: int) -> None:
        self._bar = tqdm(total=wanted, unit=f" {unit}", dynamic_ncols=True, smoothing=0.1)
        self._bar.start_t -= time.monotonic() - begun

    def update(self, done: int, wanted: int) -> None:
        if self._bar.total != wanted:
            self._bar.total = wanted
            if hasattr(self._bar, "container"):  # of a notebook, which keeps it as the widget's
                self._bar.container.children[1].max = wanted
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        self._bar.refresh()
        self._bar.close()


def _bar(unit: str, begun: float, wanted: int) -> _Line | _Tqdm:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a notebook without ipywidgets gets a bar of text
            from tqdm.auto import tqdm
            return _Tqdm(tqdm, unit, begun, wanted)
    except ImportError:
        return _Line(unit, begun)


@contextlib.contextmanager
def reports(progress: Progress, unit: str) -> Iterator[Report | None]:
    """What a long call is to be given for `progress`: None (a bar on a terminal, of calls that take
    longer), True (a bar), False, or a function of what is done and all there is."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise UsageError("progress: True, False, or a function of what is done and what there is "
                         f"(it is {shown(progress)})")
    if callable(progress) or progress is False or not (_terminal() or progress and _open()):
        yield progress if callable(progress) else None
        return
    begun = time.monotonic()
    bar: _Line | _Tqdm | None = None

    def report(done: int, wanted: int) -> None:
        nonlocal bar
        if bar is None and (progress or time.monotonic() - begun > _PATIENCE):
            bar = _bar(unit, begun, wanted)
        if bar is not None:
            bar.update(done, wanted)

    try:
        yield report
    finally:
        if bar is not None:
            bar.close()
