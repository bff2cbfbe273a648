"""Several runs in one picture."""
from __future__ import annotations

from typing import Iterable, Sequence, Union

from stageline._comparison import Comparison
from stageline._core import Result, runs_page, runs_picture
from stageline._errors import UsageError


class Figure:
    """Runs of one problem below each other, on one time axis; in a notebook its picture.

    runs: the results, in their order.
    """

    def __init__(self, runs: Iterable[Result]) -> None:
        self.runs = list(runs)
        for run in self.runs:
            if not isinstance(run, Result):
                raise UsageError(f"runs: results belong there, or a comparison (one is a "
                                 f"{type(run).__name__})")
        if not self.runs:
            raise UsageError("runs: there are none; give at least one result")

    def svg(self, panels: str | list[str] = "timeline", *, width: int | None = None,
            theme: str = "auto", start: float = 0.0, end: float | None = None, aspect: str = "",
            title: str = "", plain: bool = False, numbers: str = "", rows: Sequence[str] = (),
            arrows: str | Sequence[str] = ()) -> str:
        """As SVG. panels: of timeline, memory, weights, categories. width: px (default: 1000), or
        aspect: 16:9. start, end: seconds. title, plain, numbers, rows, arrows: as the flags of
        `stageline draw`."""
        return runs_picture(self.runs, panels, width, theme, start, end, aspect, title, plain,
                            numbers, list(rows), arrows if isinstance(arrows, str) else list(arrows))

    def html(self) -> str:
        """The interactive page of `stageline draw --html`, as a text."""
        return runs_page(self.runs)

    def _repr_svg_(self) -> str:
        return self.svg()


def draw(runs: Union[Iterable[Result], Comparison]) -> Figure:
    """A figure of several runs of one model, on as many devices, with as many micro-batches.

    runs: results, or a comparison, whose possible rows are drawn, the fastest first.

    >>> import stageline as sl
    >>> runs = [sl.simulate("uniform:layers=8", schedule=name, devices=4, microbatches=8)
    ...         for name in ("gpipe", "1f1b")]
    >>> "gpipe" in sl.draw(runs).svg()
    True
    """
    if isinstance(runs, Comparison):
        return Figure(run for run in runs.results if run is not None)
    return Figure(runs)
