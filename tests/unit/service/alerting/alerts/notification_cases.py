"""What a real Alertmanager sent its receivers, and what ours are to be sent in the same rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from service.alerting.alerts.evaluate import AlertingConfig
from service.alerting.alerts.inhibition import Inhibition
from service.alerting.alerts.matchers import parse_matchers
from service.alerting.alerts.silences import Silence
from tests.alerting import (
    BREACH,
    OK,
    UNKNOWN,
    config,
    route,
    silence,
)
from tests.unit.service.alerting.alerts.notifying import BY_TOPIC, ON_0, A, C, Rounds, every, routed

B, U = BREACH, UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    id: str
    why: str
    rounds: Rounds
    settings: AlertingConfig = field(default_factory=config)
    silences: Sequence[Silence] = ()
    notified: Sequence[str]


FIRST_EXPLAINS: Final = config(
    inhibitions=[
        Inhibition(
            source=parse_matchers("partition=0"),
            target=parse_matchers("partition=1"),
            equal=("topic",),
        )
    ]
)

ALERTMANAGER: Final = (
    Case(
        id="batching",
        why="what comes within group_wait is told together, what comes later at the next interval",
        rounds={0: {A: B}, 20: {A: B, C: B}, 30: {}, 60: {"orders-2": B}, 329: {}, 330: {}},
        notified=[
            "30 pager: first notification +orders-0,orders-1 -",
            "330 pager: new alerts added +orders-0,orders-1,orders-2 -",
        ],
    ),
    Case(
        id="repeat",
        why="at the first flush after the repeat interval, as often as it lasts",
        rounds=every(30, 7300, {A: B}),
        notified=[
            "30 pager: first notification +orders-0 -",
            "3630 pager: repeat interval elapsed +orders-0 -",
            "7230 pager: repeat interval elapsed +orders-0 -",
        ],
    ),
    Case(
        id="repeat-rounds-up",
        why="it is observed only when the group is flushed",
        settings=routed(repeat_interval=timedelta(minutes=7)),
        rounds=every(30, 660, {A: B}),
        notified=[
            "30 pager: first notification +orders-0 -",
            "630 pager: repeat interval elapsed +orders-0 -",
        ],
    ),
    Case(
        id="resolved",
        why="the last end closes the group",
        rounds={0: {A: B}, 30: {A: B}, 60: {A: OK}, 330: {A: OK}, 630: {A: OK}},
        notified=[
            "30 pager: first notification +orders-0 -",
            "330 pager: all alerts resolved + -orders-0",
        ],
    ),
    Case(
        id="some-resolved",
        why="the others go on",
        rounds={0: {A: B, C: B}, 30: {}, 60: {A: OK, C: B}, 330: {C: B}},
        notified=[
            "30 pager: first notification +orders-0,orders-1 -",
            "330 pager: some alerts resolved +orders-1 -orders-0",
        ],
    ),
    Case(
        id="without-resolved",
        why="a receiver may not want ends; what comes back is told as new",
        settings=routed(send_resolved=False),
        rounds={0: {A: B}, 30: {}, 60: {A: OK}, 330: {}, 400: {A: B}, 430: {}},
        notified=[
            "30 pager: first notification +orders-0 -",
            "430 pager: first notification +orders-0 -",
        ],
    ),
    Case(
        id="without-resolved-in-company",
        why="an end is not told, and yet what comes back is new",
        settings=routed(send_resolved=False),
        rounds={0: {A: B, C: B}, 30: {}, 60: {A: OK}, 330: {}, 340: {A: B}, 630: {}},
        notified=[
            "30 pager: first notification +orders-0,orders-1 -",
            "630 pager: new alerts added +orders-0,orders-1 -",
        ],
    ),
    Case(
        id="the-first-is-over",
        why="the group was begun by it and waits no longer for that",
        rounds={0: {A: B}, 20: {C: B}, 25: {A: OK}, 30: {}},
        notified=["30 pager: first notification +orders-1 -"],
    ),
    Case(
        id="over-before-wait",
        why="nobody was told of it",
        rounds={0: {A: B}, 15: {A: OK}, 30: {A: OK}, 330: {}},
        notified=[],
    ),
    Case(
        id="came-and-went",
        why="an end is told only of what was told",
        rounds={0: {A: B}, 30: {A: B}, 60: {A: B, C: B}, 90: {A: B, C: OK}, 330: {A: B}},
        notified=["30 pager: first notification +orders-0 -"],
    ),
    Case(
        id="came-and-went-once-more",
        why="its first end was told, and nothing since",
        rounds={
            0: {A: B, C: B},
            30: {},
            60: {A: OK},
            330: {},
            340: {A: B},
            350: {A: OK},
            630: {},
        },
        notified=[
            "30 pager: first notification +orders-0,orders-1 -",
            "330 pager: some alerts resolved +orders-1 -orders-0",
        ],
    ),
    Case(
        id="flapping",
        why="back before the next flush: for the receiver nothing happened",
        rounds={0: {A: B}, 30: {A: B}, 60: {A: OK}, 90: {A: B}, 330: {A: B}},
        notified=["30 pager: first notification +orders-0 -"],
    ),
    Case(
        id="back",
        why="after its end was told it is new, and waits as the first",
        rounds={0: {A: B}, 30: {}, 60: {A: OK}, 330: {}, 340: {A: B}, 369: {}, 370: {A: B}},
        notified=[
            "30 pager: first notification +orders-0 -",
            "330 pager: all alerts resolved + -orders-0",
            "370 pager: first notification +orders-0 -",
        ],
    ),
    Case(
        id="back-in-company",
        why="the group lives on: at its next flush",
        rounds={
            0: {A: B, C: B},
            30: {},
            60: {A: OK, C: B},
            330: {C: B},
            340: {A: B, C: B},
            630: {},
        },
        notified=[
            "30 pager: first notification +orders-0,orders-1 -",
            "330 pager: some alerts resolved +orders-1 -orders-0",
            "630 pager: new alerts added +orders-0,orders-1 -",
        ],
    ),
    Case(
        id="groups",
        why="what has other group labels is told by itself",
        settings=routed(group_by=("topic",)),
        rounds={0: {A: B, "audit-0": B}, 30: {}},
        notified=[
            "30 pager: first notification +audit-0 -",
            "30 pager: first notification +orders-0 -",
        ],
    ),
    Case(
        id="ungrouped",
        why="every alert alone",
        settings=routed(group_by=("...",)),
        rounds={0: {A: B, C: B}, 30: {}},
        notified=[
            "30 pager: first notification +orders-0 -",
            "30 pager: first notification +orders-1 -",
        ],
    ),
    Case(
        id="routes",
        why="each receiver at its own pace",
        settings=config(
            routes=(
                route("team", matchers=BY_TOPIC, group_wait=timedelta(0), continue_=True),
                route("log", matchers=parse_matchers("alertname=some_rule")),
            )
        ),
        rounds={0: {A: B, "audit-0": B}, 30: {}},
        notified=[
            "0 team: first notification +orders-0 -",
            "30 log: first notification +audit-0,orders-0 -",
        ],
    ),
    Case(
        id="silenced",
        why="a silenced group is not told",
        rounds=every(30, 700, {A: B}),
        silences=[silence(ON_0)],
        notified=[],
    ),
    Case(
        id="silence-covers-some",
        why="the others are told without it",
        rounds=every(30, 330, {A: B, C: B}),
        silences=[silence(ON_0)],
        notified=["30 pager: first notification +orders-1 -"],
    ),
    Case(
        id="silence-expires",
        why="what it hid is told at the next flush",
        rounds=every(30, 700, {A: B, C: B}),
        silences=[silence(ON_0, end=300)],
        notified=[
            "30 pager: first notification +orders-1 -",
            "330 pager: new alerts added +orders-0,orders-1 -",
        ],
    ),
    Case(
        id="silence-pending",
        why="it hides nothing before it begins",
        rounds=every(30, 60, {A: B}),
        silences=[silence(ON_0, begin=31)],
        notified=["30 pager: first notification +orders-0 -"],
    ),
    Case(
        id="end-while-silenced",
        why="it is told when the silence is over, as Prometheus sends it again",
        rounds={0: {A: B}, 30: {A: B}, 60: {A: OK}, 330: {A: OK}, 630: {A: OK}, 930: {A: OK}},
        silences=[silence(ON_0, begin=50, end=600)],
        notified=[
            "30 pager: first notification +orders-0 -",
            "630 pager: all alerts resolved + -orders-0",
        ],
    ),
    Case(
        id="the-others-are-over",
        why="what is hidden does not keep the rest open; it is told as the first when it shows",
        rounds={
            0: {A: B, C: B},
            30: {},
            60: {A: B, C: OK},
            330: {A: B},
            630: {A: B},
            930: {A: OK},
            1230: {},
        },
        silences=[silence(ON_0, begin=50, end=600)],
        notified=[
            "30 pager: first notification +orders-0,orders-1 -",
            "330 pager: all alerts resolved + -orders-1",
            "630 pager: first notification +orders-0 -",
            "930 pager: all alerts resolved + -orders-0",
        ],
    ),
    Case(
        id="the-others-are-over-and-it-ends",
        why="its end is owed all the same",
        rounds={
            0: {A: B, C: B},
            30: {},
            60: {C: OK},
            330: {},
            400: {A: OK},
            630: {},
            930: {},
        },
        silences=[silence(ON_0, begin=50, end=600)],
        notified=[
            "30 pager: first notification +orders-0,orders-1 -",
            "330 pager: all alerts resolved + -orders-1",
            "630 pager: all alerts resolved + -orders-0",
        ],
    ),
    Case(
        id="hidden-while-others-are-told",
        why="it was told before, so its end is owed",
        rounds={
            0: {A: B, C: B},
            30: {},
            60: {"orders-2": B},
            330: {},
            400: {A: OK},
            630: {},
            930: {},
        },
        silences=[silence(ON_0, begin=50, end=600)],
        notified=[
            "30 pager: first notification +orders-0,orders-1 -",
            "330 pager: new alerts added +orders-1,orders-2 -",
            "630 pager: some alerts resolved +orders-1,orders-2 -orders-0",
        ],
    ),
    Case(
        id="inhibited",
        why="what another one explains is not told",
        settings=FIRST_EXPLAINS,
        rounds={0: {A: B, C: B}, 30: {}, 330: {A: OK, C: B}, 630: {}},
        notified=[
            "30 pager: first notification +orders-0 -",
            "330 pager: new alerts added +orders-1 -orders-0",
        ],
    ),
    Case(
        id="inhibited-by-silenced",
        why="a source that is silenced still explains",
        settings=FIRST_EXPLAINS,
        rounds=every(30, 360, {A: B, C: B}),
        silences=[silence(ON_0)],
        notified=[],
    ),
    Case(
        id="unicode",
        why="labels are any text",
        rounds={0: {"zähler-ω-0": B}, 30: {}},
        silences=[silence('topic="zähler"')],
        notified=["30 pager: first notification +zähler-ω-0 -"],
    ),
)
