"""Numbers of seconds and bytes as the text that the engine reads, to the picosecond and byte."""
from __future__ import annotations

import json
import math
import numbers
import os
from typing import Any, Union

from stageline._core import visible
from stageline._errors import UsageError

Seconds = Union[float, str]
Size = Union[int, float, str]

_LONGEST = 80  # characters of a value in a message
_LIMIT = 2**63


def shown(value: Any) -> str:
    """A value in a message: one short line, whatever it is."""
    try:
        line = visible(repr(value).encode(errors="replace").decode())
    except Exception:  # of an int of thousands of digits, or of a class of the caller's
        line = f"a value of type {type(value).__name__}"
    return line if len(line) <= _LONGEST else line[:_LONGEST - 1] + "…"


def plain(value: Any) -> Any:
    """A value that JSON has, of one that NumPy or pathlib has."""
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):  # an array, or one value of one
        listed = value.tolist()
        return listed if type(listed) is type(value) else plain(listed)
    if isinstance(value, (list, tuple, range)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value


def _whole(value: Any, scale: float, rule: str) -> int:
    number = plain(value)
    if isinstance(number, (int, float)) and not isinstance(number, bool) and number >= 0:
        try:
            whole = number if isinstance(number, int) and scale == 1 else round(number * scale)
        except OverflowError:
            whole = _LIMIT
        if whole < _LIMIT:
            return whole
        raise UsageError(f"{rule} (it is {shown(value)}, which is too much)")
    raise UsageError(f"{rule} (it is {shown(value)})")


def time(value: Any, name: str) -> str:
    """'5us' as it is, 5e-6 as '5000000ps'."""
    if isinstance(value, str):
        return value
    rule = f"{name}: a time is seconds, 0 or more, or text such as \"5us\""
    return f"{_whole(value, 1e12, rule)}ps"


def size(value: Any, name: str) -> str:
    """'8GB' as it is, 8e9 as '8000000000B'."""
    if isinstance(value, str):
        return value
    rule = f"{name}: a size is bytes, 0 or more, or text such as \"8GB\""
    return f"{_whole(value, 1, rule)}B"


def link(value: Any, name: str) -> str:
    """'12GB/s,5us' as it is, or made of (bytes per second, seconds)."""
    if isinstance(value, str):
        return value
    rule = f"{name}: a link is \"12GB/s,5us\", or (bytes per second, seconds)"

    def rate(said: Any) -> str:
        return said if isinstance(said, str) else f"{_whole(said, 1, rule)}B/s"

    parts = plain(value)
    if isinstance(parts, (int, float)):
        return rate(parts)
    if isinstance(parts, list) and len(parts) == 2:
        return f"{rate(parts[0])},{time(parts[1], name)}"
    raise UsageError(f"{rule} (it is {shown(value)})")


def lengths(value: Any, name: str) -> Any:
    """'2048,1024+3072' as it is, or made of [2048, [1024, 3072]]: tokens, or those of the documents
    that a sequence packs."""
    listed = plain(value)
    if not isinstance(listed, list):
        return value
    rule = f"{name}: tokens are whole numbers from 1 on, one a micro-batch, or a list of its documents"
    of_each = [one if isinstance(one, list) else [one] for one in listed]
    return ",".join("+".join(str(_whole(tokens, 1, rule)) for tokens in one) for one in of_each)


def slow(value: Any) -> str:
    """'gpu2:1.2' as it is, or made of {'gpu2': 1.2}."""
    if isinstance(value, dict):
        return ",".join(f"{name}:{factor}" for name, factor in value.items())
    return str(value)


def _share(value: Any, name: str) -> Any:
    """'1%' as it is, 0.01 as '1%'."""
    number = plain(value)
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        return f"{100 * number:.12g}%" if math.isfinite(number) else number
    return value


def _number(value: Any, name: str) -> Any:
    """'1' as it is, 1 as '1'."""
    number = plain(value)
    return str(number) if isinstance(number, int) and not isinstance(number, bool) else value


_WRITTEN = {"memory": size, "reserve": size, "host_memory": size, "link": link, "host_link": link,
            "lengths": lengths, "zero": _number, "shard_group": _number, "within": _share}


def _check(value: Any, name: str) -> None:
    """Refuses what JSON, or a text in UTF-8, does not have."""
    if isinstance(value, (list, dict)):
        for one in value:
            _check(one, name)
        if isinstance(value, dict):
            _check(list(value.values()), name)
    elif isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{name}: this text has no form in UTF-8 "
                             f"(it is {shown(value)})") from None
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise UsageError(f"{name}: a number is finite (it is {value})")
    elif isinstance(value, int):
        if not -_LIMIT <= value < 2 * _LIMIT:
            raise UsageError(f"{name}: a whole number has at most 64 bits (it is {shown(value)})")
    elif value is not None:
        raise UsageError(f"{name}: a number or a text belongs there (it is {shown(value)})")


def said(value: Any, name: str) -> Any:
    """The value of a setting as JSON has it."""
    if name in _WRITTEN:
        value = _WRITTEN[name](value, name)
    elif name == "slow":
        value = slow(value)
    value = plain(value)
    _check(value, name)
    return value


def word(value: Any, name: str) -> str:
    """A text that is one."""
    if not isinstance(value, str):
        raise UsageError(f"{name}: a text belongs there (it is {shown(value)})")
    _check(value, name)
    return value


def words(values: Any, name: str) -> list[str]:
    """Texts, in a list or the like."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise UsageError(f"{name}: a list of texts belongs there (it is {shown(values)})")
    return [word(one, name) for one in values]


def whole(value: Any, name: str, least: int = 0) -> int:
    """A whole number of 32 bits."""
    number = plain(value)
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number < 2**31:
        raise UsageError(f"{name}: a whole number from {least} to {2**31 - 1} belongs there "
                         f"(it is {shown(value)})")
    return number


def path(value: Any, name: str) -> str:
    """The name of a file, a folder or what is bundled."""
    try:
        text = os.fsdecode(value)
    except TypeError:
        text = ""
    if not text:
        raise UsageError(f"{name}: a name or a path belongs there (it is {shown(value)})")
    _check(text, name)
    return text


def column(value: Any, name: str, layers: int) -> Any:
    """One value a layer, or the same for all, as doubles of NumPy."""
    import numpy as np

    try:
        given = np.asarray(value)
        if given.dtype.kind not in "iufbO":  # whole, real, or of Python's own
            raise TypeError
        array = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{name}: numbers belong there, one a layer (it is {shown(value)})") from None
    if given.ndim > 1:
        raise UsageError(f"{name}: one value a layer, and not a table of {given.ndim} dimensions")
    return array if given.ndim else np.full(layers, array)


def given(settings: dict[str, Any]) -> dict[str, Any]:
    """Those that are said. What is empty, which the engine takes for nothing said, is a slip."""
    for name, value in settings.items():
        _check(name, "settings")
        if plain(value) in ("", []):
            raise UsageError(f"{name}: this is empty; leave it out, or say which")
    return {name: value for name, value in settings.items() if value is not None}


def request(settings: dict[str, Any]) -> str:
    """The settings that are given, as the JSON of a request."""
    return json.dumps({name: said(value, name) for name, value in given(settings).items()})


def text(value: Any, name: str) -> str:
    """One value of a setting, as it would be typed."""
    if hasattr(value, "text") and hasattr(value, "layers"):  # a Model
        return str(value.to_json() if value.opened_with else value.text)
    one = said(value, name)
    if isinstance(one, bool):
        return "true" if one else "false"
    if isinstance(one, (str, int, float)):
        return str(one)
    if isinstance(one, dict):
        return json.dumps(one)
    if isinstance(one, list):
        raise UsageError(f"{name}: a scenario has one value; several of them are an axis: "
                         f"axes={{\"{name}\": …}}")
    raise UsageError(f"{name}: a number or a text belongs there (it is {shown(value)})")


def axis(values: Any, name: str) -> Union[str, list[str]]:
    """The values of an axis: a range as text, in which none is listed; or a list."""
    if hasattr(values, "tolist"):
        values = plain(values)
    if isinstance(values, str):
        return word(values, name)
    if isinstance(values, range) and len(values) > 1 and values.step > 0:
        by = "" if values.step == 1 else f":{values.step}"
        return f"{values[0]}..{values[-1]}{by}"
    if isinstance(values, dict) or not hasattr(values, "__iter__"):
        values = [values]
    return [text(value, name) for value in values]
