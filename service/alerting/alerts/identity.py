"""The identity of an alert: its labels, and Alertmanager's fingerprint of them.

The labels are those of the finding, its rule as `alertname`, and its severity. A finding whose
severity changes is therefore another alert. Receivers, amtool and Alertmanager identify an alert by
the fingerprint alone, so that ours has to equal theirs bit by bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from rules.evidence import Evidence
from rules.open_findings import Identity
from rules.verdict import Severity

ALERTNAME: Final = "alertname"
SEVERITY: Final = "severity"
INCIDENT: Final = "incident"  # of lost records: all that one broker's loss of leadership caused

Labels = Mapping[str, str]
AlertKey = tuple[Identity, Severity]  # equivalent to the labels, without the cost of building them

# 64-bit FNV-1a; Alertmanager closes every name and every value with a byte that is no UTF-8.
_BASIS: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = 0xFFFFFFFFFFFFFFFF
_END: Final = b"\xff"


def labels_of(
    identity: Identity, severity: Severity, evidence: Evidence | None = None
) -> dict[str, str]:
    """Return an alert's labels, by name. Empty ones are left out: Alertmanager drops them too.

    The incident of a loss is read from its evidence, and never changes.
    """
    rule_id, finding_labels = identity
    incident = (evidence or {}).get(INCIDENT)
    labels = {**dict(finding_labels), ALERTNAME: rule_id, SEVERITY: str(severity)}
    if isinstance(incident, str):
        labels[INCIDENT] = incident
    return {name: labels[name] for name in sorted(labels) if labels[name]}


def fingerprint(labels: Labels) -> str:
    """Return the fingerprint of labels in any order: 16 hexadecimal digits."""
    state = _BASIS
    for name in sorted(labels):
        state = _mix(state, name, labels[name])
    return f"{state:016x}"


@lru_cache(maxsize=8192)  # alerts of one rule and cluster begin alike
def _mix(state: int, name: str, value: str) -> int:
    # Text that is no Unicode must not end a round: whatever it is, it has one form.
    text = _END.join((name.encode(errors="surrogatepass"), value.encode(errors="surrogatepass")))
    for byte in text + _END:
        state = ((state ^ byte) * _PRIME) & _MASK
    return state
