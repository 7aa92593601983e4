"""A dynamic setting of one broker that is another one for a while, and then what it was before."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

from collectors.wire import codec
from collectors.wire.api import DESCRIBE_CONFIGS
from rules.errors import SandboxError
from rules.facts.identity import BrokerId
from service.runtime.clock import wait_until
from service.sandbox.faults.stage import SETTLE_SECONDS, Stage
from service.sandbox.workloads.raw_cluster import RawCluster, require

OF_BROKER: Final = 4  # ConfigResource.Type of the protocol
SET_FOR_ONE: Final = 2  # ConfigSource of the protocol: DYNAMIC_BROKER_CONFIG


@contextlib.contextmanager
def changed_setting(stage: Stage, broker: BrokerId, name: str, value: str) -> Iterator[None]:
    """Set one broker's setting for the length of a block; then its own one is back."""
    before = _own_setting(stage.cluster, broker, name)
    try:
        stage.admin.set_broker_config(broker, {name: value})
        yield
    finally:
        _restore(stage, broker, name, before)


def _restore(stage: Stage, broker: BrokerId, name: str, value: str | None) -> None:
    """Set it back, and await that the broker has heard: it may be asked for its setting next."""
    stage.admin.set_broker_config(broker, {name: value})

    def is_back() -> bool:
        return _own_setting(stage.cluster, broker, name) == value

    if not wait_until(is_back, timeout_seconds=SETTLE_SECONDS):
        raise SandboxError(f"broker {broker} has not heard that {name} is back")


def _own_setting(cluster: RawCluster, broker: BrokerId, name: str) -> str | None:
    """Return what is set for this broker alone, at run time; None where nothing is."""

    def build(version: int) -> Any:
        resource = codec.message(DESCRIBE_CONFIGS, version, "DescribeConfigsResource")(
            resource_type=OF_BROKER, resource_name=str(broker), configuration_keys=(name,)
        )
        return codec.message(DESCRIBE_CONFIGS, version, "DescribeConfigsRequest")(
            resources=(resource,), include_synonyms=False, include_documentation=False
        )

    found = cluster.ask(broker, DESCRIBE_CONFIGS, build).results[0]
    require(f"settings of broker {broker}", found.error_code)
    own = [entry.value for entry in found.configs if int(entry.config_source) == SET_FOR_ONE]
    return own[0] if own else None
