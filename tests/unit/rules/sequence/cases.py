"""All cases: what rounds saw of one partition, and what is said after the last one."""

from __future__ import annotations

from typing import Final

from tests.unit.rules.sequence.harmless_cases import HARMLESS
from tests.unit.rules.sequence.loss_cases import AFTER_CHANGES
from tests.unit.rules.sequence.unseen_cases import UNSEEN

CASES: Final = {**HARMLESS, **AFTER_CHANGES, **UNSEEN}
