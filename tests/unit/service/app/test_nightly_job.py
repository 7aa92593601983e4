"""The job `nightly` starts a command that there is."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click
import pytest

from service.app.history import nightly_error, nightly_jobs
from service.cli.main import run
from service.cli.nightly import command
from service.scheduling.job import Command
from service.settings import read_settings
from service.terminal.exit_codes import ExitCode


def test_the_baseline_run_is_started_by_options_that_its_command_has() -> None:
    settings = read_settings({"TIDEMARK_SERVICE__DATA_DIR": "/data", "TIDEMARK_KAFKA__NAME": "c"})
    [job] = nightly_jobs(settings, Path("/etc/tidemark.toml"))
    assert isinstance(job.work, Command)
    words = list(job.work.argv)
    assert words[1:5] == ["-P", "-m", "service", "nightly"]
    context = command.commands["run"].make_context("run", words[6:])
    given = {
        name: one
        for name, one in context.params.items()
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }
    assert given == {
        "output": "json",
        "path": Path("/etc/tidemark.toml"),
        "data_dir": "/data",
        "cluster": "c",
    }


def test_files_of_values_are_named_so_that_a_job_finds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEMARK_DATABASE__URL_FILE", "secrets/url")
    monkeypatch.setenv("TIDEMARK_KAFKA__NAME", "a/name")
    [job] = nightly_jobs(read_settings({}), None)
    assert isinstance(job.work, Command)
    given = {name: value for name, value in job.work.environment.items() if "secrets" in value}
    assert given == {"TIDEMARK_DATABASE__URL_FILE": str(tmp_path / "secrets/url")}


def test_without_spark_the_service_has_no_such_job_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    settings = read_settings({})
    assert nightly_jobs(settings, None) == []
    assert "pip install 'pyspark==" in (nightly_error(settings) or "")
    assert nightly_error(read_settings({"TIDEMARK_NIGHTLY__ENABLED": "false"})) is None
    assert run(["nightly", "run", "--history", "/nowhere"]) == ExitCode.STORE, "before Spark"
