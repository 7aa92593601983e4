"""Which Kafka release the run's cluster has, and which tests need a newer one."""

from __future__ import annotations

import os
from typing import Final

import pytest

from service.sandbox.cluster.releases import DEFAULT_VERSION
from service.sandbox.faults import needed_release

VERSION: Final = os.environ.get("SANDBOX_KAFKA_VERSION", DEFAULT_VERSION)
MARKER: Final = "needs_kafka"


def needs_kafka(version: str) -> pytest.MarkDecorator:
    """Mark what is not in older releases of Kafka; there the test is left out."""
    return getattr(pytest.mark, MARKER)(version)  # type: ignore[no-any-return]


TRANSACTIONS_V2: Final = needs_kafka(needed_release.TRANSACTIONS_V2)
ELIGIBLE_REPLICAS: Final = needs_kafka(needed_release.ELIGIBLE_REPLICAS)
VERIFICATION: Final = needs_kafka(needed_release.VERIFICATION)
PRODUCER_EXPIRATION: Final = needs_kafka(needed_release.PRODUCER_EXPIRATION)
SCRAM_USERS: Final = needs_kafka("3.5")  # KIP-900


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def is_left_out(item: pytest.Item) -> bool:
    """Whether a test needs a newer release than the run has."""
    needed = [mark.args[0] for mark in item.iter_markers(MARKER)]
    return any(numbers(VERSION) < numbers(version) for version in needed)
