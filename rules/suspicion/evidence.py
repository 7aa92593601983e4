"""The evidence of suspicions, for the rules that cannot decide because of them."""

from __future__ import annotations

from typing import Final

from rules.facts.suspicions import Suspicion
from rules.facts.times import iso_time
from rules.sequence.evidence_fields import SuspicionEvidence
from rules.suspicion.words import explain, needed_evidence
from rules.view import View

SHOWN: Final = 20


def list_suspicion_evidence(view: View) -> list[SuspicionEvidence]:
    """Return the evidence of the suspicions that are not settled, the latest last."""
    return [_evidence(suspicion) for suspicion in view.memory.suspicions.undecided[-SHOWN:]]


def _evidence(suspicion: Suspicion) -> SuspicionEvidence:
    return {
        "suspicion": suspicion.id,
        "brokers": list(suspicion.brokers),
        "address": suspicion.address,
        "error": suspicion.error,
        "count": suspicion.count,
        "since": iso_time(suspicion.since_us),
        "until": iso_time(suspicion.until_us),
        "outcome": str(suspicion.outcome),
        "explanation": explain(suspicion),
        "needed_evidence": needed_evidence(suspicion),
    }
