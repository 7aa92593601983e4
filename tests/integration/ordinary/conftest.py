"""The run's cluster keeps Kafka's own time-outs where a plan says so."""

from __future__ import annotations

import pytest

from service.sandbox.cluster.cluster import SandboxOptions
from tests.integration.ordinary.plan import PLAN
from tests.kafka_release import VERSION


@pytest.fixture(scope="session")
def sandbox_options() -> SandboxOptions:
    return SandboxOptions(kafka_version=VERSION, realistic=PLAN.realistic)
