"""`tidemark nightly run` on a folder: whose it is, whether it is there, which days are not folded."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from service.app.history import SETTLED, fold_folder
from service.cli.main import run
from service.history.days import days_of
from service.history.folder import open_folder
from service.settings import read_settings
from service.terminal.exit_codes import ExitCode
from tests.factories import at
from tests.integration.history.persistence import Kept

pytestmark = pytest.mark.integration

DAY = timedelta(days=1)
SAID = "tidemark: history at "


@pytest.fixture
def history(tmp_path: Path) -> str:
    """Return a folder with hours of two days, none of them folded."""
    kept = Kept(tmp_path, time_zone="Europe/Berlin")
    for seconds in (0, 15, 13 * 3600):
        kept.round(seconds)
    kept.recorder.close()
    kept.shipper.ship()
    return kept.url


def test_hours_that_wait_are_days_to_learn_from(
    history: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Left out, such a day would be learnt as one without data, and never observed again."""
    ask = ["nightly", "run", "--dry-run", "-o", "json", "--history", history]
    day = at(0).date()
    for one in ([], ["--date", day.isoformat()]):
        assert run([*ask, *one]) == ExitCode.OK
        assert json.loads(capsys.readouterr().out)["days"][0] >= day.isoformat()
    settings = read_settings({"TIDEMARK_SERVICE__DATA_DIR": str(tmp_path / "another")})
    folded = fold_folder(open_folder(history), settings, at(0) + DAY + SETTLED)
    assert folded.days == days_of(open_folder(history)) == [day]


def test_the_folder_of_another_cluster_or_zone_is_told_with_what_to_type(
    history: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_HISTORY__URL", history)
    ask = ["nightly", "run", "--dry-run"]
    assert run(ask) == ExitCode.STORE
    told = capsys.readouterr().err
    assert told.startswith(f"{SAID}{history} is of the cluster c, not default: give --cluster c")
    assert run([*ask, "--cluster", "c"]) == ExitCode.STORE
    assert "TIDEMARK_HISTORY__TIME_ZONE=Europe/Berlin" in capsys.readouterr().err
    monkeypatch.setenv("TIDEMARK_HISTORY__TIME_ZONE", "Europe/Berlin")
    assert run([*ask, "--cluster", "c"]) == ExitCode.OK
    assert run([*ask, "--history", history, "--cluster", "d"]) == ExitCode.STORE
    assert "is of the cluster c, not d" in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_a_folder_that_was_named_and_is_not_there_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    data = ["--data-dir", str(tmp_path / "data")]
    missing = str(tmp_path / "missing")
    assert run(["nightly", "run", "--history", missing, *data, *options]) == ExitCode.STORE
    assert capsys.readouterr().err == f"tidemark: there is no history yet at {missing}\n"
    assert list(tmp_path.iterdir()) == []
