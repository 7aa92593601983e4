"""Options of `tidemark history import`, and what does not fit together."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import pytest

from service.cli.history.options import read_span
from service.cli.main import run
from service.terminal.exit_codes import ExitCode

NOW = datetime(2026, 11, 26, 17, 0, 30, tzinfo=UTC)


def options(begin: str | None, end: str | None, zone: str | None = None) -> dict[str, object]:
    return {"begin": begin, "end": end, "step": 300, "times_zone": zone}


def test_a_span_is_on_the_grid_of_its_step_and_ends_by_now() -> None:
    span = read_span(options("2026-11-26T01:02:03+01:00", "2027-01-01"), NOW)
    assert datetime.fromtimestamp(span.start_s, UTC).isoformat() == "2026-11-26T00:05:00+00:00"
    assert span.end_s == int(NOW.timestamp()) - 30
    assert read_span(options(None, None), NOW).start_s == span.end_s - 35 * 86_400 + 300


def test_a_time_without_a_zone_is_of_the_zone_that_is_given() -> None:
    span = read_span(options("2026-11-20", None, "Europe/Berlin"), NOW)
    assert datetime.fromtimestamp(span.start_s, UTC).isoformat() == "2026-11-19T23:00:00+00:00"


@pytest.mark.parametrize(
    ("begin", "end"), [("2026-11-20", "2026-11-19"), ("soon", None), ("2027-01-01", None)]
)
def test_an_empty_span_is_wrong_usage(begin: str, end: str | None) -> None:
    with pytest.raises(click.UsageError):
        read_span(options(begin, end), NOW)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--exporter kminion",
        "--prometheus http://p:9090",
        "--prometheus http://user:secret@p:9090 --exporter kminion",
        "--prometheus ftp://p --exporter kminion",
        "--prometheus http://p:9090 --query lag",
        "--prometheus http://p:9090 --exporter kminion --match a=b",
        "--prometheus http://p:9090 --exporter kminion --step 1d",
        "--time-zone Moon/Crater --prometheus http://p:9090 --exporter kminion",
        "no-such-file.csv",
    ],
)
def test_what_does_not_fit_together_is_wrong_usage(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["history", "import", *words.split()]) == ExitCode.USAGE
    assert "secret" not in capsys.readouterr().err
