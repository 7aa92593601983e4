"""The dashboards as they are published: JSON that was generated and committed; reading it needs no SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent / "generated"
RECORDED_FOLDER: Final = Path(__file__).parent / "generated_recorded"  # graphs of recorded series
TITLE: Final = "Kafka exactly-once"  # of the folder in Grafana


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardFile:
    """One dashboard."""

    name: str  # of the file
    document: Mapping[str, Any]

    @property
    def uid(self) -> str:
        """Return the uid, which is lasting."""
        return str(self.document["uid"])

    @property
    def title(self) -> str:
        """Return the title."""
        return str(self.document["title"])

    @property
    def text(self) -> str:
        """Return the content of the file."""
        return json.dumps(self.document, sort_keys=True, indent=2) + "\n"


def read_files(values: Mapping[str, str], *, is_recorded: bool = False) -> Iterator[DashboardFile]:
    """Yield the dashboards, with the values that variables have at first.

    Args:
        values: by name of the variable; the others keep their defaults.
        is_recorded: whether graphs read the series that Prometheus' recording rules make.
    """
    for path in sorted((RECORDED_FOLDER if is_recorded else FOLDER).glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        for variable in document["templating"]["list"]:
            if variable["name"] in values:
                _set(variable, values[variable["name"]])
        yield DashboardFile(name=path.name, document=document)


def _set(variable: dict[str, Any], value: str) -> None:
    variable["current"] = {"selected": True, "text": value, "value": value}
    if variable["type"] == "textbox":
        variable["query"] = value
