"""The run's cluster keeps Kafka's own time-outs where a plan says so."""

from __future__ import annotations

import pytest

from service.sandbox.cluster import SandboxOptions
from tests.integration.ordinary.plan import PLAN


@pytest.fixture(scope="session")
def sandbox_options() -> SandboxOptions:
    return SandboxOptions(realistic=PLAN.realistic)
