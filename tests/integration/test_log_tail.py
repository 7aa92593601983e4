"""The logs of real brokers, read as a service reads them while one of them comes and goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from rules.facts.broker_log import FollowerStarted, LogEvent, LogLoaded
from rules.facts.identity import BrokerId
from service.app.feeds import log_files
from service.observe.log_files import LogFiles
from service.runtime.clock import utc_now, wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.layout import node_layout
from service.settings import BrokerLogSettings
from tests.integration.sandbox_logs import log_files_of

pytestmark = pytest.mark.integration
SECONDS = 180.0
BROKER = 2


@pytest.fixture
def logs(faults: Sandbox) -> Iterator[LogFiles]:
    made = log_files(BrokerLogSettings.model_validate({"files": log_files_of(faults)}))
    yield made
    made.close()


def test_a_broker_that_comes_back_tells_what_it_loaded_and_whom_it_follows(
    faults: Sandbox, admin: SandboxAdmin, new_name: Callable[[str], str], logs: LogFiles
) -> None:
    topic, began = new_name("tailed"), utc_now()
    admin.create_topic(topic, partitions=3)
    data = node_layout(faults.directory, BROKER).data
    folders = [data / f"{topic}-{number}" / "partition.metadata" for number in range(3)]
    assert wait_until(lambda: all(one.exists() for one in folders), timeout_seconds=SECONDS)
    fed = logs.read(None)
    assert (fed.gaps, fed.is_behind) == ((), False)
    position, events = fed.position, list[LogEvent]()
    faults.kill(BROKER)
    faults.start(BROKER)

    def is_reported() -> bool:
        nonlocal position
        found = logs.read(position)
        assert found.gaps == ()
        position = found.position
        events.extend(event for event in found.events if event.topic == topic)
        return all(
            {event.partition for event in events if isinstance(event, kind)} == {0, 1, 2}
            for kind in (LogLoaded, FollowerStarted)
        )

    assert wait_until(is_reported, timeout_seconds=SECONDS, poll_seconds=0.5), events
    loaded = [event for event in events if isinstance(event, LogLoaded)]
    assert {event.origin.broker_id for event in loaded} == {BrokerId(BROKER)}
    assert {event.origin.source for event in loaded} == {f"broker {BROKER}"}
    assert sorted(event.partition for event in loaded) == [0, 1, 2], "each once"
    for event in events:
        assert event.origin.at is not None
        assert began <= event.origin.at <= utc_now(), "brokers of the sandbox log in UTC"
