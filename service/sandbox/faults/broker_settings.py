"""A dynamic setting of one broker that is changed for a while, and then restored."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from collectors.wire.api import DESCRIBE_CONFIGS
from rules.errors import SandboxError
from rules.facts.identity import BrokerId
from service.runtime.clock import wait_until
from service.sandbox.faults.fault_run import SETTLE_SECONDS, FaultRun
from service.sandbox.workloads.raw_cluster import RawCluster, require

OF_BROKER: Final = 4  # ConfigResource.Type of the protocol
SET_FOR_ONE: Final = 2  # ConfigSource of the protocol: DYNAMIC_BROKER_CONFIG


@contextlib.contextmanager
def changed_setting(run: FaultRun, broker: BrokerId, name: str, value: str) -> Iterator[None]:
    """Set one broker's setting for the length of a block; then restore it."""
    before = _own_setting(run.cluster, broker, name)
    try:
        run.admin.set_broker_config(broker, {name: value})
        yield
    finally:
        _restore(run, broker, name, before)


def _restore(run: FaultRun, broker: BrokerId, name: str, value: str | None) -> None:
    """Restore it, and wait until the broker reports it: the next request may read the setting."""
    run.admin.set_broker_config(broker, {name: value})

    def is_back() -> bool:
        return _own_setting(run.cluster, broker, name) == value

    if not wait_until(is_back, timeout_seconds=SETTLE_SECONDS):
        raise SandboxError(f"broker {broker} does not report {name} as restored")


def _own_setting(cluster: RawCluster, broker: BrokerId, name: str) -> str | None:
    """Return what is set for this broker alone, at run time; None where nothing is."""
    answer = cluster.ask(
        broker,
        DESCRIBE_CONFIGS,
        resources=[
            {
                "resource_type": OF_BROKER,
                "resource_name": str(broker),
                "configuration_keys": (name,),
            }
        ],
        include_synonyms=False,
        include_documentation=False,
    )
    result = answer.results[0]
    require(f"settings of broker {broker}", result.error_code)
    own = [entry.value for entry in result.configs if int(entry.config_source) == SET_FOR_ONE]
    return own[0] if own else None
