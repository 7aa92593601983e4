"""Programs of ours that we start are ours, whatever lies in the folder where somebody started us."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final

import pytest

from service.app.history import nightly_jobs
from service.runtime.children import PYTHON, TREE, child_environment, module_command
from service.runtime.clock import wait_until
from service.sandbox.cluster import processes
from service.sandbox.cluster.processes import Liveness, liveness
from service.scheduling.command import RunningCommand
from service.scheduling.job import Command, Ended
from service.settings import read_settings

pytestmark = pytest.mark.integration

SECONDS: Final = 180.0
WHERE: Final = "import os; print(os.getcwd())"


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with modules named like ours and Python's; give the file of those that were run."""
    ran = tmp_path / "ran"
    for name in ("service", "rules", "json", "click"):
        (tmp_path / name).mkdir()
        for module in ("__init__", "__main__"):
            code = f"open({str(ran)!r}, 'a').write(__name__ + '\\n')\n"
            (tmp_path / name / f"{module}.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return ran


def run(*argv: str) -> Ended:
    async def start() -> Ended:
        return await (await RunningCommand.start(Command(argv))).ended()

    return asyncio.run(start())


def test_the_scheduled_baseline_run_is_our_own_program(trap: Path) -> None:
    [job] = nightly_jobs(read_settings({"TIDEMARK_SERVICE__DATA_DIR": "data"}), None)
    assert isinstance(job.work, Command)
    ended = run(*job.work.argv, "--help")
    assert ended.detail == ""
    assert not trap.exists(), trap.read_text(encoding="utf-8")
    assert str(trap.parent / "data") in job.work.argv, "of another folder it would be another"


def test_a_program_of_a_job_works_in_the_root_folder(trap: Path) -> None:
    assert run(PYTHON, "-c", f"{WHERE}; raise SystemExit(1)").detail.endswith(": /")
    assert not trap.exists()


def test_what_a_sandbox_leaves_running_is_ours_and_works_in_the_root_folder(trap: Path) -> None:
    output = trap.with_name("output")
    for command, text in (
        (module_command("service", "--help"), "Usage"),
        ([PYTHON, "-c", WHERE], "/\n"),
    ):
        process = processes.spawn(command, output=output)
        assert wait_until(
            lambda process=process: liveness(process) is Liveness.DEAD,  # type: ignore[misc]
            timeout_seconds=SECONDS,
        )
        assert output.read_text(encoding="utf-8").startswith(text)
    assert not trap.exists(), trap.read_text(encoding="utf-8")


def test_the_environment_means_the_same_in_another_folder(trap: Path) -> None:
    assert child_environment({"PYTHONPATH": f":lib{os.pathsep}/opt:"}) == {
        "PYTHONPATH": f"{TREE}{os.pathsep}{trap.with_name('lib')}{os.pathsep}/opt",
        "PYTHONSAFEPATH": "1",
    }
