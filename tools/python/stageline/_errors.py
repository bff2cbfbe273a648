"""What can be wrong with what the engine is asked."""
from __future__ import annotations

import re

from stageline._core import visible

_PLACE = re.compile(r"\bline (\d+)(?:, column (\d+))?")


class Error(ValueError):
    """Of the input; its text is one sentence: what, the rule, the numbers, where, a hint.

    ``line`` and ``column`` count from 1; None where the fault has no place in a text.
    """

    line: int | None = None
    column: int | None = None

    def __init__(self, message: str = "") -> None:
        super().__init__(visible(message.encode(errors="replace").decode()))  # names of files

    def _place_from(self, text: str) -> None:
        if found := _PLACE.search(text):
            self.line = int(found[1])
            self.column = int(found[2]) if found[2] else None


class UsageError(Error):
    """An argument that is not allowed, or arguments that do not go together."""


class TraceError(Error):
    """A trace or a cluster that violates its format.

    ``file`` is its name; ``where`` a JSON pointer or "line 3".
    """

    def __init__(self, message: str = "", file: str = "", where: str = "") -> None:
        super().__init__(message)
        self.file = file
        self.where = where
        self._place_from(where)


class ProgramError(Error):
    """A program that violates a rule.

    ``device`` and ``position`` (in the list of that device) count from 0; None where the fault has
    no single place. ``figure``: an excerpt of the lists, or "".
    """

    def __init__(self, message: str = "", device: int = -1, position: int = -1,
                 figure: str = "") -> None:
        super().__init__(message)
        self.device = device if device >= 0 else None
        self.position = position if position >= 0 else None
        self.figure = figure
        self._place_from(message)


class Deadlock(ProgramError):
    """A program that cannot finish.

    ``cycle``: ops such as "0F3" that each wait for the next, and the last for the first.
    """

    def __init__(self, message: str = "", cycle: list[str] | None = None,
                 figure: str = "") -> None:
        super().__init__(message, figure=figure)
        self.cycle = list(cycle or [])


class ContradictionError(RuntimeError):
    """An answer that contradicts itself: a defect of Stageline, whatever was asked."""
