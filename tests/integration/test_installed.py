"""The wheel, installed beside packages whose names are those of our folders, with Spark and without."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

import pyspark
import pytest

from rules.baseline.layout import RUNS
from service.app.history import SETTLED
from service.history.days import write_day
from service.history.folder import Described, open_folder
from service.runtime.clock import utc_now
from service.terminal.exit_codes import ExitCode
from tests.database_files import give_files
from tests.folders import new_folder
from tests.integration.serve.served import Served, Start, end_processes, plain_environment
from tests.spark.processes import LIGHT
from tests.spark.weeks import FIRST, ZONE, blocks_of_day, day_at

pytestmark = pytest.mark.integration

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("service", "collectors", "rules", "dashboards", "spark", "migrations")
RUNBOOKS: Final = ROOT / "docs" / "runbooks"
FILES: Final = ("setup.py", "pyproject.toml", "README.md", "LICENSE")
PACKAGES: Final = Path(pyspark.__file__).parents[1]  # of this test run
SECONDS: Final = 240.0
NAMES: Final = ("PYTHONPATH", "JAVA_TOOL_OPTIONS")  # which would tell where things are
# What the service does with a job that is a program, in the wheel's own words.
SCHEDULED: Final = """
import asyncio, sys, tidemark
sys.path.insert(0, str(tidemark.TREE))
from service.runtime.children import module_command
from service.scheduling.command import Command, RunningCommand
async def run():
    return await (await RunningCommand.start(Command(module_command("service", "--version")))).ended()
ended = asyncio.run(run())
raise SystemExit(ended.detail or 0)
"""


def uv(*words: str | Path) -> None:
    offline = ("--offline", "--no-config", "--quiet")
    program = Path(sys.executable).with_name("uv")
    done = subprocess.run(
        [program, *words, *offline], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    """Give a short path that the database's user may pass through."""
    folder = new_folder()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def wheel(base: Path) -> Path:
    """Build the wheel from a copy, as a build leaves files behind."""
    sources = base / "sources"
    for name in FOLDERS:
        shutil.copytree(ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(RUNBOOKS, sources / "docs" / "runbooks")
    for name in FILES:
        shutil.copy(ROOT / name, sources)
    uv("build", "--wheel", "--no-build-isolation", "--python", sys.executable, sources)
    [made] = (sources / "dist").glob("*.whl")
    return made


@dataclasses.dataclass(frozen=True)
class Installed:
    """An environment with the wheel; `trap` lists modules of other packages that were run as ours."""

    folder: Path
    trap: Path

    def run(
        self, *words: str, program: str = "tidemark", environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.folder / "bin" / program, *words],
            env=self.environment() | dict(environment or {}),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def environment(self) -> dict[str, str]:
        return {name: value for name, value in plain_environment().items() if name not in NAMES}

    def assert_alone(self) -> None:
        """Check that no other package was taken for ours."""
        assert not self.trap.exists(), self.trap.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def installed(base: Path, wheel: Path) -> Installed:
    """Install the wheel without Spark: what else it needs is linked from this test run's packages."""
    installed = Installed(base / "env", base / "trap")
    uv("venv", "--python", sys.executable, installed.folder)
    python = installed.folder / "bin/python"
    uv("pip", "install", "--no-deps", "--compile-bytecode", "--python", python, wheel)
    packages = base / "packages"
    packages.mkdir()
    for path in PACKAGES.iterdir():
        if not path.name.startswith(("pyspark", "tidemark", "__")):
            (packages / path.name).symlink_to(path)
    [site] = installed.folder.glob("lib/python3*/site-packages")
    (site / "others.pth").write_text(f"{packages}\n", encoding="utf-8")
    for name in FOLDERS:
        (site / name).mkdir()
        for module in ("__init__", "__main__"):
            code = f"open({str(installed.trap)!r}, 'a').write(__name__ + '\\n')\n"
            (site / name / f"{module}.py").write_text(code, encoding="utf-8")
    return installed


@dataclasses.dataclass(frozen=True, kw_only=True)
class InstalledStart(Start):
    """Starts the service of an environment."""

    installed: Installed

    def command(self) -> list[str]:
        options = super().command()[3:]  # after the interpreter and the module
        return [str(self.installed.folder / "bin/tidemark"), *options]

    def environment(self) -> dict[str, str]:
        return {key: value for key, value in super().environment().items() if key not in NAMES}


def test_a_wheel_has_one_name_and_all_that_is_not_python(wheel: Path) -> None:
    names = {Path(name) for name in zipfile.ZipFile(wheel).namelist()}
    assert {name.parts[0].partition("-")[0] for name in names} == {"tidemark"}
    tree = {name.relative_to("tidemark/_tree") for name in names if "_tree" in name.parts}
    sources = {path.relative_to(ROOT) for name in FOLDERS for path in (ROOT / name).rglob("*.*")}
    sources |= {path.relative_to(ROOT) for path in RUNBOOKS.iterdir()}
    left_out = {path for path in sources - tree if path.suffix != ".pyc"}
    others = {path for path in left_out if path.parts[:2] != ("dashboards", "stack")}
    assert {str(path.parent) for path in others} == {"service/launcher"}, "it is the package itself"


def test_programs_are_ours_beside_packages_of_the_same_names(installed: Installed) -> None:
    for done in (
        installed.run("--version"),
        installed.run("-m", "tidemark", "--version", program="python"),
        installed.run("config", "example"),
        installed.run("runbook", "show", "transaction_hanging"),
        installed.run("-c", SCHEDULED, program="python"),
    ):
        assert done.returncode == ExitCode.OK, done.stderr
    installed.assert_alone()


def test_without_spark_a_service_watches_and_says_once_what_is_missing(
    installed: Installed, base: Path
) -> None:
    directory = base / "data"
    start = InstalledStart(bootstrap="127.0.0.1:1", directory=directory, installed=installed)
    served = Served(start, base / "serve.log")
    try:
        served.wait_rounds(2)
        assert served.get("/livez").status_code == 200
        said = served.status()["nightly_error"]
        assert f"pip install 'pyspark=={pyspark.__version__}'" in said
        assert [event["why"] for event in served.events("baseline_runs_not_made")] == [said]
        jobs = {job["name"] for job in served.document("/api/v1/jobs")["items"]}
        assert "nightly" not in jobs
        assert served.stop() == ExitCode.OK, served.reported()
    finally:
        end_processes(directory)
    run = installed.run("nightly", "run", "--data-dir", str(directory))
    assert run.returncode == ExitCode.NOT_INSTALLED
    assert run.stderr.count("\n") == 1
    assert "tidemark[nightly]" in run.stderr
    installed.assert_alone()


def test_with_spark_a_baseline_run_uses_our_modules_alone(installed: Installed, base: Path) -> None:
    history, directory = base / "history", give_files(base / "learning")
    yesterday = ((utc_now() - SETTLED).astimezone() - timedelta(days=1)).date()
    folder = open_folder(str(history), Described(cluster="c", time_zone=ZONE, buckets=1))
    place = (yesterday - FIRST).days
    write_day(folder, day_at(place), blocks_of_day(place))
    extra = base / "extra"
    extra.mkdir()
    (extra / "pyspark").symlink_to(pyspark.__path__[0])
    words = ("nightly", "run", "--history", str(history), "--master", "local[1]")
    data = ("--data-dir", str(directory))
    upgrade = installed.run("db", "upgrade", *data)
    assert upgrade.returncode == ExitCode.OK, upgrade.stderr
    done = installed.run(
        *words, *data, environment={"PYTHONPATH": str(extra), "JAVA_TOOL_OPTIONS": LIGHT}
    )
    assert done.returncode == ExitCode.OK, done.stderr + done.stdout
    assert os.listdir(history / RUNS), done.stderr  # noqa: PTH208 - a name is enough
    installed.assert_alone()
