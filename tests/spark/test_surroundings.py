"""What a baseline run must not depend on: where it is started, what its folder is called, whose it is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
import pytest

from service.jobs.baseline_run.spark_process import SparkOrder, job_environment
from service.runtime.children import TREE
from service.runtime.clock import wait_until
from tests.spark.processes import WAIT_SECONDS, family
from tests.spark.weeks import make_weeks

UNNAMED: Final = 54321  # a user id that is in nobody's passwd
SECRET: Final = "the-key-of-an-object-store"  # noqa: S105 - of nothing
# To whom the folder of the interpreter is closed it is no more than a path: the user keeps the one right to pass it.
AS_UNNAMED: Final = (
    *("setpriv", f"--reuid={UNNAMED}", "--regid=0", "--clear-groups"),
    *("--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override"),
)
PROGRAM: Final = """
import os, pathlib, sys
from tests.spark.processes import ALL_DAYS, order, run
conf = {"spark.hadoop.fs.s3a.secret.key": os.environ["SECRET"], "spark.driver.memory": "600m"}
history, scratch = map(pathlib.Path, sys.argv[1:])
print(len(run(order(history, scratch, days=ALL_DAYS[:1], conf=conf))))
"""
SHADOWS: Final = ("service", "spark", "rules", "pyspark", "numpy", "json", "encodings")


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a run."""

    output: str
    errors: str
    command_lines: frozenset[str]
    surroundings: Path


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Run the job in a folder of traps, below a folder of a difficult name, as a user without one."""
    surroundings = tmp_path_factory.mktemp("surroundings")
    here = _lay_traps(surroundings)
    data = surroundings / """it's $(touch ran) `touch ran` a,b "c";#d%41"""
    make_weeks(data / "history", days=1)
    command = [sys.executable, "-P", "-c", PROGRAM, str(data / "history"), str(data / "scratch")]
    is_root = os.geteuid() == 0
    environment = {**os.environ, "PYTHONPATH": str(TREE), "HOME": "/", "SECRET": SECRET}
    environment.pop("SPARK_USER", None)
    with (
        (surroundings / "out").open("wb") as out,
        (surroundings / "err").open("wb") as errors,
        subprocess.Popen(
            [*(AS_UNNAMED if is_root else ()), *command],
            cwd=here,
            env=environment,
            stdout=out,
            stderr=errors,
        ) as process,
    ):
        lines: set[str] = set()

        def has_ended() -> bool:
            lines.update(" ".join(_words(one)) for one in family(process.pid))
            return process.poll() is not None

        ended = wait_until(has_ended, timeout_seconds=2 * WAIT_SECONDS, poll_seconds=0.2)
        if not ended:
            process.kill()
    output, error = ((surroundings / name).read_text("utf-8", "replace") for name in ("out", "err"))
    return Seen(output, error, frozenset(lines), surroundings)


def _words(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def _lay_traps(surroundings: Path) -> Path:
    """Fill a folder, and the one above it, with what would be run by mistake; return the folder."""
    here = surroundings / "home" / "here"
    here.mkdir(parents=True)
    trap = f"open({str(surroundings / 'ran')!r}, 'a').write(__name__ + '\\n')\n"
    for name in SHADOWS:
        (here / name).mkdir()
        for module in ("__init__", "__main__", "daemon"):
            (here / name / f"{module}.py").write_text(trap, encoding="utf-8")
    (here.parent / "jars").mkdir()
    submit = (
        here.parent / "bin" / "spark-submit"
    )  # PySpark looks for a Spark above the folder that it is in
    submit.parent.mkdir()
    submit.write_text(f"#!/bin/sh\necho submit >> '{surroundings / 'ran'}'\nexit 1\n", "utf-8")
    submit.chmod(0o755)
    return here


def test_a_user_without_a_name_makes_a_run_in_a_folder_of_any_name(seen: Seen) -> None:
    assert seen.output == "1\n", seen.errors


def test_nothing_of_the_folder_that_it_is_started_in_is_run(seen: Seen) -> None:
    assert not list(seen.surroundings.rglob("ran")), (seen.surroundings / "ran").read_text()


def test_no_command_line_has_a_value_of_a_setting(seen: Seen) -> None:
    assert not [line for line in seen.command_lines if SECRET in line]
    assert any("-Xmx600m" in line for line in seen.command_lines), "settings arrive"


@pytest.mark.parametrize("given", [{}, {"HADOOP_USER_NAME": "history"}])
def test_a_user_without_a_name_is_given_one(tmp_path: Path, given: Mapping[str, str]) -> None:
    order = SparkOrder(
        master="local[1]", conf={}, arguments=(), scratch=tmp_path / "a b", timeout_seconds=60
    )
    own = job_environment(order, given, uid=UNNAMED)
    assert own["SPARK_USER"] == "tidemark"
    assert own["HADOOP_USER_NAME"] == given.get("HADOOP_USER_NAME", "tidemark")
    assert f'-Duser.home="{order.scratch}"' in own["JAVA_TOOL_OPTIONS"]
    named = job_environment(order, given, uid=0)
    assert "SPARK_USER" not in named
    assert "user.home" not in named["JAVA_TOOL_OPTIONS"]
