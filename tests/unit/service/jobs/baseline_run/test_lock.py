"""One nightly run at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.errors import ConflictError
from service.jobs.baseline_run.lock import alone


def test_a_second_run_is_rejected_and_the_next_is_not(tmp_path: Path) -> None:
    with alone(tmp_path / "new"):
        with pytest.raises(ConflictError, match="another"), alone(tmp_path / "new"):
            pass
        with alone(tmp_path / "other"):
            pass
    with alone(tmp_path / "new"):
        pass
