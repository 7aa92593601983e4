"""The line with which a broker's process begins to start.

A controller that runs in the same process writes it as well, with its own class before it.
Source: BrokerServer (KRaft) of Kafka 2.8 to 4.4, and lines of real 4.1 brokers. A broker with ZooKeeper has no line
of this form.
"""

from __future__ import annotations

from typing import Final

from collectors.broker_log.wording.fields import LineUnreadableError, broker_if_any, compile_pattern
from collectors.broker_log.wording.line import Line
from rules.facts.broker_log import BrokerStarted

STARTING: Final = "Transition from SHUTDOWN to STARTING"

_BROKER: Final = compile_pattern(r"\[BrokerServer id=(?P<broker>\d{1,10})\] $")
_OTHER: Final = "[ControllerServer id="


def starting(line: Line) -> BrokerStarted | None:
    """Read that a broker starts; None: a controller does."""
    match = _BROKER.search(line.head)
    if match is None:
        if _OTHER in line.head:
            return None
        raise LineUnreadableError(line.head + line.message)
    broker_id = broker_if_any(match["broker"])
    if broker_id is None:
        raise LineUnreadableError(line.head + line.message)
    return BrokerStarted(origin=line.origin, broker_id=broker_id)
