"""Numbers of seconds and bytes as the text that the engine reads, to the picosecond and byte."""
from __future__ import annotations

import json
import numbers
import os
from typing import Any, Union

from stageline._errors import UsageError

Seconds = Union[float, str]
Size = Union[int, float, str]


def _whole(value: Any, scale: float, rule: str) -> int:
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = float(value)
        if 0 <= number < float("inf"):
            return int(value) if isinstance(value, numbers.Integral) and scale == 1 \
                else round(number * scale)
    raise UsageError(f"{rule} (it is {value!r})")


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
    if isinstance(value, numbers.Real):
        return size(value, name) + "/s"
    if isinstance(value, (tuple, list)) and len(value) == 2:
        rate = value[0] if isinstance(value[0], str) else size(value[0], name) + "/s"
        return f"{rate},{time(value[1], name)}"
    raise UsageError(f"{name}: a link is \"12GB/s,5us\", or (bytes per second, seconds) "
                     f"(it is {value!r})")


def slow(value: Any) -> str:
    """'gpu2:1.2' as it is, or made of {'gpu2': 1.2}."""
    if isinstance(value, dict):
        return ",".join(f"{name}:{factor}" for name, factor in value.items())
    return str(value)


def plain(value: Any) -> Any:
    """A value that JSON has, of one that NumPy or pathlib has."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple, range)) or hasattr(value, "tolist"):
        return [plain(one) for one in value]
    return value


_WRITTEN = {"memory": size, "reserve": size, "host_memory": size, "link": link, "host_link": link}


def said(value: Any, name: str) -> Any:
    """The value of a setting as JSON has it."""
    if name in _WRITTEN:
        value = _WRITTEN[name](value, name)
    elif name == "slow":
        value = slow(value)
    return plain(value)


def request(settings: dict[str, Any]) -> str:
    """The settings that are given, as the JSON of a request."""
    words = {name: said(value, name) for name, value in settings.items() if value is not None}
    try:
        return json.dumps(words)
    except TypeError:
        pass
    for name, value in words.items():
        try:
            json.dumps(value)
        except TypeError:
            raise UsageError(f"{name}: a number or a text belongs there (it is {value!r})") from None
    raise AssertionError(f"{words!r} is no JSON, though each of its values is")


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
    raise UsageError(f"{name}: a number or a text belongs there (it is {value!r})")


def axis(values: Any, name: str) -> Union[str, list[str]]:
    """The values of an axis: a range as text, in which none is listed; or a list."""
    if isinstance(values, str):
        return values
    if isinstance(values, range) and len(values) > 1 and values.step > 0:
        by = "" if values.step == 1 else f":{values.step}"
        return f"{values[0]}..{values[-1]}{by}"
    if isinstance(values, dict) or not hasattr(values, "__iter__"):
        values = [values]
    return [text(value, name) for value in values]
