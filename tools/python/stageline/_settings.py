"""The settings that calls take as keyword arguments, and their text in docstrings."""
from __future__ import annotations

import inspect
from typing import Any, Callable, TypeVar

from stageline import _core

Call = TypeVar("Call", bound=Callable[..., Any])


def settings() -> list[dict[str, Any]]:
    """All settings, by group: dicts with name, group, help, and which calls take them.

    call: whether `simulate` or `compare` does; sweep: whether `sweep` and `phase` do.

    >>> import stageline as sl
    >>> [row["group"] for row in sl.settings() if row["name"] in ("tp", "recompute")]
    ['Parallelism', 'Memory']
    """
    return _core.settings()


def documents_settings(taken: str, without: tuple[str, ...] = ()) -> Callable[[Call], Call]:
    """A decorator: the docstring ends with the settings that a call takes, by group.

    taken: "call" or "sweep". without: those that it does not take, beside its own parameters.
    """
    def document(call: Call) -> Call:
        own = (*inspect.signature(call).parameters, *without)
        groups: dict[str, list[str]] = {}
        for row in settings():
            if row[taken] and row["name"] not in own:
                groups.setdefault(row["group"], []).append(f"{row['name']}: {row['help']}")
        if call.__doc__:
            call.__doc__ = call.__doc__.rstrip() + "\n\n    Settings:\n" + "".join(
                f"\n    {group}\n" + "".join(f"        {line}\n" for line in lines)
                for group, lines in groups.items())
        return call
    return document
