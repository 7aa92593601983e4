"""Which release of Kafka a fault needs; `tests/` leave out on older ones what is rejected here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rules.errors import SandboxError
from rules.facts.broker_log import SequenceForm
from service.sandbox.cluster.releases import Release
from service.sandbox.faults.fault_run import FaultOptions
from service.sandbox.workloads.raw_producer import Protocol

ELIGIBLE_REPLICAS: Final = "4.1"  # where a new cluster has them (KIP-966)
TRANSACTIONS_V2: Final = "4.0"  # KIP-890
VERIFICATION: Final = "3.6"  # KIP-890, part 1
PRODUCER_EXPIRATION: Final = "3.5"  # producer.id.expiration.ms (KIP-854)

OF_FAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "unreplicated-loss": ELIGIBLE_REPLICAS,  # its follower is elected although out of sync
        "unclean-without-loss": ELIGIBLE_REPLICAS,  # its leader would still be in sync
        "sequence-state-expired": PRODUCER_EXPIRATION,
    }
)
OF_FORMS: Final[Mapping[SequenceForm, str]] = MappingProxyType(
    {
        SequenceForm.EXPECTED_ZERO: TRANSACTIONS_V2,
        SequenceForm.EARLIEST_SEEN: VERIFICATION,
    }
)


def needed_release(fault: str, options: FaultOptions) -> str | None:
    """Return the oldest release that a fault with these options can be made on; None: any."""
    of_protocol = TRANSACTIONS_V2 if options.protocol is Protocol.V2 else None
    releases = (OF_FAULTS.get(fault), OF_FORMS.get(options.form), of_protocol)
    return max((release for release in releases if release is not None), default=None, key=_numbers)


def require_release(fault: str, options: FaultOptions, release: Release) -> None:
    """Raise where the sandbox's Kafka is too old for a fault."""
    needed = needed_release(fault, options)
    if needed is not None and _numbers(release.version) < _numbers(needed):
        raise SandboxError(
            f"{fault} so needs Kafka {needed} or newer, and this sandbox runs {release.version}"
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))
