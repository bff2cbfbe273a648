"""Many schedules side by side."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator

from stageline._core import Compared, Result, visible
from stageline._errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

# Shown in a notebook: column, heading, how a value is written.
_SHOWN = (
    ("schedule", "schedule", str),
    ("devices", "devices", str),
    ("partition", "cut", str),
    ("step_time", "step (ms)", lambda value: f"{1e3 * value:.5g}"),
    ("throughput", "throughput (1/s)", lambda value: f"{value:.5g}"),
    ("bubble", "bubble", lambda value: f"{100 * value:.1f} %"),
    ("peak_memory", "peak (GB)", lambda value: f"{value / 1e9:.4g}"),
    ("fits", "fits", lambda value: "yes" if value else "no"),
    ("staleness", "staleness", lambda value: f"{value:g}"),
    ("error", "why not", str),
)


def _row(schedule: str, devices: int, cut: str, result: Result | None, error: str
         ) -> dict[str, Any]:
    row: dict[str, Any] = {"schedule": schedule, "devices": devices, "partition": cut}
    for name in ("microbatches", "step_time", "step_time_ps", "throughput", "speedup", "bubble",
                 "peak_memory", "fits", "synchronous", "staleness"):
        row[name] = None if result is None else getattr(result, name)
    row["error"] = error or None
    return row


class Comparison:
    """Rows of schedules; those that fit first, the fastest of them first, the impossible last.

    rows: dicts with times in seconds (and picoseconds), sizes in bytes, and `error`, the reason
    where there is no result. results: parallel to rows; None where a schedule cannot run.
    """

    def __init__(self, compared: Compared | None, own: list[Result]) -> None:
        self._compared = compared
        rows = [] if compared is None else [(_row(*row), row[3]) for row in compared.rows]
        rows += [(_row(one.schedule, one.devices, one.cut, one, ""), one) for one in own]
        self.sentences = [] if own or compared is None else [
            str(ranking["sentence"]) for ranking in compared.rankings]
        rows.sort(key=lambda row: (row[1] is None, row[1] is not None and row[1].fits is False,
                                   -(row[0]["throughput"] or 0)))
        self.rows: list[dict[str, Any]] = [row for row, _ in rows]
        self.results: list[Result | None] = [result for _, result in rows]

    @property
    def best(self) -> Result:
        """The fastest synchronous result that fits, or may fit; else the fastest asynchronous."""
        able = [one for one in self.results if one is not None and one.fits is not False]
        for one in able:
            if one.synchronous:
                return one
        if not able:
            raise UsageError("no schedule fits into memory")
        return able[0]

    def json(self) -> str:
        """What `stageline compare --json` writes; keys in tools/report/json/README.md."""
        if self._compared is None or len(self.rows) != len(self._compared.rows):
            raise UsageError("a comparison with schedules of your own has no JSON: take .rows")
        return self._compared.json()

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a DataFrame (needs pandas); picoseconds and bytes stay whole numbers."""
        import pandas
        frame = pandas.DataFrame(self.rows)
        return frame.astype({name: "Int64" for name in ("microbatches", "step_time_ps",
                                                        "peak_memory")})

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """For polars and others that read Arrow (needs pyarrow)."""
        import pyarrow
        return pyarrow.Table.from_pylist(self.rows).__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, schedule: str) -> Result:
        """The result of a schedule by its name."""
        for row, result in zip(self.rows, self.results):
            if row["schedule"] == schedule and result is not None:
                return result
        raise KeyError(schedule)

    def _columns(self) -> list[tuple[str, str, Any]]:
        return [column for column in _SHOWN
                if any(row[column[0]] is not None for row in self.rows)]

    def _cells(self) -> list[list[str]]:
        columns = self._columns()
        return [["" if row[name] is None else visible(write(row[name])) for name, _, write in columns]
                for row in self.rows]

    def __repr__(self) -> str:
        lines = [[heading for _, heading, _ in self._columns()], *self._cells()]
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
                         for line in lines)

    def _repr_html_(self) -> str:
        import html

        def line(cells: list[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
        body = "".join(line(cells, "td") for cells in self._cells())
        head = line([heading for _, heading, _ in self._columns()], "th")
        said = "".join(f"<p>{html.escape(visible(sentence))}</p>" for sentence in self.sentences)
        return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>{said}"
