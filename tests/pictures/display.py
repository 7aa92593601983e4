"""How a field's options make a text and a color of a value, as Grafana does: mappings first, then thresholds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.pictures.answers import Cell
from tests.pictures.units import in_unit, iso

Options = Mapping[str, Any]  # of a field, by the names that Grafana saves
# What Grafana takes where a panel has no thresholds.
DEFAULT_STEPS: Final = ({"value": None, "color": "green"}, {"value": 80, "color": "red"})


@dataclass(frozen=True, slots=True)
class Shown:
    """A value on the screen; the color is a name of Grafana's."""

    text: str
    color: str


def show(value: Cell, options: Options, now: float, *, is_time: bool = False) -> Shown:
    """Return what is shown of a value; `now` is in seconds since 1970-01-01 UTC."""
    mapped = mapping_of(value, options.get("mappings", ()))
    text = mapped.get("text") if mapped else None
    color = mapped.get("color") if mapped else None
    if text is None:
        text = _text(value, options, now, is_time=is_time)
    return Shown(text, color or step_of(value, steps_of(options)))


def _text(value: Cell, options: Options, now: float, *, is_time: bool) -> str:
    unit = options.get("unit", "")
    if value is None:
        return str(options.get("noValue", ""))
    if isinstance(value, bool):
        return in_unit(value, unit, now) if unit.startswith("bool") else str(value).lower()
    if isinstance(value, str):
        return value
    if is_time and not unit.startswith("dateTime"):
        return iso(value, now)
    return in_unit(value, unit or "none", now)


def steps_of(options: Options) -> Sequence[Mapping[str, Any]]:
    """Return the thresholds of a field."""
    steps: Sequence[Mapping[str, Any]] = options.get("thresholds", {}).get("steps", DEFAULT_STEPS)
    return steps


def step_of(value: Cell, steps: Sequence[Mapping[str, Any]]) -> str:
    """Return the color of the last step that a value reaches; that of the base for no number."""
    color = str(steps[0]["color"])
    if value is None or isinstance(value, str):
        return color
    for step in steps[1:]:
        if value >= step["value"]:
            color = str(step["color"])
    return color


def mapping_of(value: Cell, mappings: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the text and the color that the first fitting mapping has for a value."""
    for mapping in mappings:
        options = mapping["options"]
        if mapping["type"] == "special":
            if options["match"] == "null+nan" and _is_absent(value):
                result: Mapping[str, Any] = options["result"]
                return result
        elif value is not None and _key(value) in options:
            named: Mapping[str, Any] = options[_key(value)]
            return named
    return None


def _key(value: Cell) -> str:
    """Return a value as JavaScript makes a key of it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _is_absent(value: Cell) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
