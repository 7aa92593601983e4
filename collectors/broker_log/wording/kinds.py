"""The kinds of lines that are searched for, by the words with which their messages begin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from collectors.broker_log.wording import elections, rejections, replicas
from collectors.broker_log.wording.line import FirstLine, Line
from rules.facts.broker_log import LogEvent


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of lines."""

    mark: str  # with which the message begins; rare in all other lines
    # Returns None for a line that begins so and is no event; LineUnreadableError if it is of this
    # kind and cannot be read.
    read: Callable[[Line], LogEvent | FirstLine | None]
    is_second: bool = False  # it belongs to the line before, which has its time


def _of_exception(mark: str, read: Callable[[Line], LogEvent | None]) -> Kind:
    return Kind(mark, read, is_second=True)


# In the order in which they are tried on one line: an exception's name only where no message that
# is known follows it.
KINDS: Final = (
    Kind(rejections.FIRST, rejections.first_line),
    _of_exception(rejections.OUT_OF_ORDER, rejections.out_of_order),
    _of_exception(rejections.INVALID, rejections.invalid),
    _of_exception(rejections.EPOCH, rejections.epoch),
    _of_exception(rejections.FENCED, rejections.epoch),
    Kind(replicas.SHRINKING, replicas.shrinking),
    Kind(replicas.UPDATED, replicas.updated),
    Kind(replicas.STILL_LEADER, replicas.still_leader),
    Kind(replicas.LEADER, replicas.leader),
    Kind(replicas.LOADED, replicas.loaded),
    Kind(replicas.FOLLOWER, replicas.follower),
    Kind(replicas.TRUNCATING, replicas.truncating),
    Kind(replicas.NON_MONOTONIC, replicas.non_monotonic),
    Kind(elections.SETTING, elections.setting),
    Kind(elections.UNCLEAN, elections.change),
    _of_exception("OutOfOrderSequenceException:", rejections.cut),
    _of_exception("InvalidProducerEpochException:", rejections.cut),
)
