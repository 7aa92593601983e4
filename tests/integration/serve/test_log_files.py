"""Log files as a service reads them: shown while it runs, and every line once over kill -9."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.integration.serve.conftest import Serve
from tests.integration.serve.served import Document, Served
from tests.log_lines import append_failed, stamped, thrown

pytestmark = pytest.mark.integration

REJECTED = (
    append_failed("elsewhere-0"),
    thrown(
        "Out of order sequence number for producer 2001 at offset 3 in partition elsewhere-0:"
        " 27 (incoming seq. number), 2 (current end sequence number)"
    ),
)
UNREADABLE = thrown("Out of order sequence number for producer 2001 at offs")


@pytest.fixture
def log(folder: Path) -> Path:
    made = Path(os.path.realpath(folder)) / "logs"
    made.mkdir()
    return made / "server.log"


def append(log: Path, *lines: str, end: str = "\n") -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write("\n".join(lines) + end)


def reading(log: Path, **more: Any) -> dict[str, Any]:
    """Return how a service is started that reads a folder of logs."""
    source = {"path": f"{log.parent}/*.log", "name": "kafka", "broker_id": 1}
    return {"settings": {"BROKER_LOGS__FILES": json.dumps([source])}, **more}


def source_of(status: Document) -> Document:
    (found,) = [one for one in status["broker_logs"] if one["source"] == "kafka"]
    return dict(found)


def wait_lines(served: Served, count: int) -> Document:
    """Wait until so many lines were read by this process; those rounds are stored by then."""
    found = served.wait_status(
        lambda seen: seen["broker_logs"] and source_of(seen)["lines"] >= count, f"{count} lines"
    )
    assert source_of(found)["lines"] == count
    return found


def test_a_killed_service_goes_on_where_its_last_stored_round_ended(
    serve: Serve, log: Path
) -> None:
    append(log, stamped("old"))
    served = serve(**reading(log)).wait_ready()
    wait_lines(served, 0)
    append(log, *REJECTED, UNREADABLE, stamped("ordinary"))
    append(log, stamped("beg"), end="")
    found = wait_lines(served, 4)
    served.wait_rounds(2)
    assert source_of(served.status())["lines"] == 4
    served.kill()

    append(log, "un")
    log.rename(f"{log}.2026-11-21-10")
    append(log, *REJECTED)
    log.rename(f"{log}.2026-11-21-11")
    append(log, stamped("last"))
    again = serve(**reading(log)).wait_ready()
    wait_lines(again, 4)
    again.wait_rounds(2)
    source = source_of(again.status())
    assert (source["lines"], source["unparsed"], source["lost_bytes"]) == (4, 0, 0)
    assert source["error"] is None

    first = source_of(found)
    assert (first["unparsed"], first["unreadable"]) == (1, [UNREADABLE])
    assert first["last_line_at"] == "2026-11-21T11:56:40.159000Z"
    (told,) = [one for one in served.rounds() if one.get("log_lines")]
    assert (told["log_lines"], told["log_events"], told["log_lines_unparsed"]) == (4, 1, 1)
    samples = again.metrics()
    labels = '{cluster="default",source="kafka"}'
    assert samples[f"tidemark_broker_log_lines_total{labels}"] == 4
    assert samples[f"tidemark_broker_log_unparsed_lines_total{labels}"] == 0


def test_what_cannot_be_read_is_a_gap_that_ends(serve: Serve, log: Path) -> None:
    served = serve(**reading(log)).wait_ready()
    why = f"no file matches {log.parent}/*.log"
    served.wait_status(
        lambda seen: seen["broker_logs"] and source_of(seen)["error"] == why, "no error"
    )
    gaps = served.document("/api/v1/clusters/default")["items"]
    assert [gap["why"] for gap in gaps if gap["scope"] == "broker_log"] == [why]
    append(log, stamped("first"))
    wait_lines(served, 1)
    away, back = (
        served.wait_event("log_source_not_read"),
        served.wait_event("log_source_read_again"),
    )
    assert (away["source"], away["why"], back["source"]) == ("kafka", why, "kafka")
    assert len(served.events("log_source_not_read")) == 1
