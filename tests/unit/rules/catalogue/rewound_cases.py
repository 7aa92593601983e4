"""Case table: when a group is said to have gone back."""

from __future__ import annotations

from rules.facts.gap import GapScope
from tests.factories import gap
from tests.unit.rules.catalogue.commit_observations import (
    AGAIN,
    BREACH,
    LEFT_OUT,
    OK,
    UNKNOWN,
    UNNAMED,
    at,
)
from tests.unit.rules.catalogue.judging import Case

REWOUND = [
    Case(
        id="first",
        because="there is nothing to compare with",
        observations=(at(50),),
        verdict=OK,
        reason="first_observation",
    ),
    Case(
        id="forward",
        because="it moved on",
        observations=(at(50), at(60)),
        verdict=OK,
        reason="not_back",
    ),
    Case(
        id="back",
        because="ten offsets will be read again",
        observations=(at(50), at(40)),
        verdict=BREACH,
        reason="went_back",
    ),
    Case(
        id="recreated",
        because="a topic of the same name with another id is another topic",
        observations=(at(50), at(3, **AGAIN)),
        verdict=OK,
        reason="first_observation",
    ),
    Case(
        id="no-topic-id",
        because="the topic may have been created again in between",
        observations=(at(50, **UNNAMED), at(40, **UNNAMED)),
        verdict=UNKNOWN,
        reason="no_topic_id",
    ),
    Case(
        id="topic-id-is-new",
        because="brokers that were upgraded tell an id, but there is none to compare it with",
        observations=(at(50, **UNNAMED), at(40)),
        verdict=OK,
        reason="first_observation",
    ),
    Case(
        id="back-behind-half-a-list",
        because="a list that leaves its topic out forgets nothing",
        observations=(at(50), LEFT_OUT, at(40)),
        verdict=BREACH,
        reason="went_back",
    ),
    Case(
        id="back-behind-a-gap",
        because="a round in which its coordinator was away forgets nothing",
        observations=(at(50), {"gaps": (gap(scope=GapScope.COMMITS),)}, at(40)),
        verdict=BREACH,
        reason="went_back",
    ),
]
