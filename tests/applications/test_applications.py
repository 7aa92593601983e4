"""Healthy applications that promise exactly-once, killed and back, raise no false alarm.

Real Kafka Streams, Kafka Connect and MirrorMaker 2. APPLICATION_SECONDS sets for how long each is
watched by itself (`make applications`); without it one short run of the first two has to do (`make
test`): MirrorMaker runs in Connect's workers, and needs a second cluster.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

import pytest

from tests.applications.application import Application
from tests.applications.conftest import WHOLE, MakeGround
from tests.applications.connect import ConnectApplication
from tests.applications.mirror import MirrorApplication
from tests.applications.run import Plan, Run
from tests.applications.streams import StreamsApplication

SECONDS: Final = float(os.environ.get("APPLICATION_SECONDS", "60"))
KILL_EVERY_SECONDS: Final = 120.0
# Nobody goes on for the only instance, and its successor waits for its transactions to time out.
KILL_ONLY_ONE_EVERY_SECONDS: Final = 240.0

pytestmark = [pytest.mark.integration, pytest.mark.timeout(SECONDS + 600)]

Make = Callable[[], Sequence[Application]]
TOGETHER: Final = [
    pytest.param(lambda: [StreamsApplication(), ConnectApplication()], 1, id="together")
]
ALONE: Final = [
    pytest.param(lambda: [StreamsApplication()], 1, id="streams"),
    pytest.param(lambda: [ConnectApplication()], 1, id="connect"),
    pytest.param(lambda: [MirrorApplication()], 2, id="mirror"),
]


@pytest.mark.parametrize(("make", "clusters"), ALONE if WHOLE else TOGETHER)
def test_a_healthy_application_raises_no_false_alarm(
    make: Make, clusters: int, make_ground: MakeGround, undo: ExitStack
) -> None:
    every = KILL_EVERY_SECONDS if clusters == 1 else KILL_ONLY_ONE_EVERY_SECONDS
    run = Run(make(), make_ground(clusters), undo)
    assert run.go(Plan(SECONDS, max(1, round(SECONDS / every))))
