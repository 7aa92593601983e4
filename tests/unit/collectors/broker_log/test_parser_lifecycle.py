"""The line with which a broker begins to start; a controller in the same process writes another one."""

from __future__ import annotations

import pytest

from rules.facts.broker_log import BrokerStarted
from rules.facts.identity import BrokerId
from tests.log_lines import events_of, origin, parser, stamped

STARTING = "Transition from SHUTDOWN to STARTING"


def test_a_broker_names_itself() -> None:
    line = stamped(f"[BrokerServer id=2] {STARTING}", logger="kafka.server.BrokerServer")
    [event] = events_of(line)
    assert isinstance(event, BrokerStarted)
    assert (event.broker_id, event.origin.at) == (BrokerId(2), origin().at)


@pytest.mark.parametrize(
    ("line", "unparsed"),
    [
        pytest.param(f"[ControllerServer id=2] {STARTING}", 0, id="controller"),
        pytest.param("[BrokerServer id=2] Transition from STARTING to STARTED", 0, id="started"),
        pytest.param(f"[BrokerServer id=99999999999] {STARTING}", 1, id="no-number-of-a-broker"),
        pytest.param(f"somebody wrote: {STARTING}", 1, id="somebody-else"),
    ],
)
def test_other_lines_are_no_start(line: str, unparsed: int) -> None:
    lines = parser()
    assert lines.feed([stamped(line).encode()]) == []
    assert lines.unparsed == unparsed
