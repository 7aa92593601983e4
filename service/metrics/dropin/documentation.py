"""Writes the tables of names into the pages about moving from an exporter to Tidemark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from service.metrics.dropin.exporter import Exporter, Family, Single

BEGIN: Final = (
    "<!-- Generated from service/metrics/dropin/ by `make golden`; a test compares. -->\n"
)
END: Final = "<!-- End of what is generated. -->\n"


def page_name(exporter: Exporter) -> str:
    """Return the name of the file in docs/."""
    return f"moving-from-{exporter.name.replace('_', '-')}.md"


def with_names(page: str, exporter: Exporter) -> str:
    """Return a page whose generated part is that of the exporter as it is now."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return head + BEGIN + "\n" + "\n".join(_sections(exporter)) + "\n" + END + tail


def _sections(exporter: Exporter) -> Iterator[str]:
    yield (
        "| metric | type | labels | meaning | Tidemark's own |\n|---|---|---|---|---|\n"
        + "".join(_row(entry) for entry in exporter.entries)
    )
    yield _reasons("missing metric", exporter.missing)
    if exporter.missing_labels:
        yield _reasons("missing label", exporter.missing_labels)


def _row(entry: Family | Single) -> str:
    metric = entry.metric
    native = f"`{entry.native}`" if entry.native else ""
    labels = ", ".join(metric.labels)
    return f"| `{metric.name}` | {metric.type} | {labels} | {metric.help} | {native} |\n"


def _reasons(title: str, reasons: Mapping[str, str]) -> str:
    rows = (f"| `{name}` | {why} |\n" for name, why in reasons.items())
    return f"| {title} | why |\n|---|---|\n" + "".join(rows)
