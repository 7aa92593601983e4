"""Which series the names in files are; a task does it, as there may be as many wrong names as rows."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from rules.baseline.naming import SeriesNameError, parse_name
from spark.history_import.schemas import EXAMPLE_CHARACTERS, SERIES, SURVEY_ARROW

NO_NAME = "a row without a series"


def check_names(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a survey; those whose series has no name that can be get the reason, and it as example."""
    for batch in batches:
        columns = {name: batch.column(name).to_pylist() for name in SURVEY_ARROW.names}
        for place, name in enumerate(columns[SERIES]):
            if columns["reason"][place] is None:
                why = _reason(name or "")
                columns["reason"][place] = why
                columns["example"][place] = why and (name or NO_NAME)[:EXAMPLE_CHARACTERS]
        yield pa.RecordBatch.from_pydict(columns, schema=SURVEY_ARROW)


def _reason(name: str) -> str | None:
    try:
        parse_name(name, "")
    except SeriesNameError as exc:
        return exc.reason.value
    return None
