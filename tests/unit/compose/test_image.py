"""The image agrees with the Compose stack, the settings and the locks."""

from __future__ import annotations

import re

from service.settings import read_settings
from service.settings.advice import is_loopback
from tests.unit.compose.stack import (
    EXACT_TAG,
    ROOT,
    SERVICES,
    final_stage,
    image_environment,
    instructions,
)


def test_both_stages_stand_on_one_exact_python() -> None:
    bases = {line.split()[1] for line in instructions() if line.startswith("FROM ")}
    assert len(bases) == 1
    name, _, tag = bases.pop().partition(":")
    assert name == "python"
    assert EXACT_TAG.fullmatch(tag)


def test_the_image_holds_every_package_of_ours() -> None:
    copied = {line.split()[1].rstrip("/") for line in instructions() if line.startswith("COPY ")}
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"} <= copied
    for line in instructions():
        if line.startswith("COPY ") and "--from" not in line:
            assert all((ROOT / source).exists() for source in line.split()[1:-1]), line


def test_nothing_that_is_copied_is_ignored() -> None:
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = {line.removeprefix("!") for line in ignore if line.startswith("!")}
    assert "*" in ignore
    assert "dashboards/stack" in ignore
    for line in instructions():
        if line.startswith("COPY ") and "--from" not in line:
            assert {source.rstrip("/") for source in line.split()[1:-1]} <= allowed, line


def test_the_image_and_the_stack_run_as_one_user() -> None:
    (user,) = [line.split()[1] for line in final_stage() if line.startswith("USER ")]
    assert user == SERVICES["tidemark"]["user"]
    assert "STOPSIGNAL SIGTERM" in final_stage()
    assert any(line.startswith("HEALTHCHECK ") for line in final_stage())


def test_the_image_alone_can_be_reached_and_keeps_its_data_on_a_volume() -> None:
    settings = read_settings(image_environment())
    assert not is_loopback(settings.http)
    assert f"EXPOSE {settings.http.port}" in final_stage()
    assert f'VOLUME ["{settings.service.data_dir}"]' in final_stage()


def test_a_user_that_only_has_the_group_of_root_can_write_the_data() -> None:
    folder = image_environment()["TIDEMARK_SERVICE__DATA_DIR"]
    (made,) = [line for line in final_stage() if "install --directory" in line]
    options = made.partition("install --directory ")[2].split()
    assert options == ["--owner=10001", "--group=0", "--mode=0770", folder]


def pins(file: str) -> dict[str, set[str]]:
    """Read a lock as pin (name==version) -> hashes."""
    found: dict[str, set[str]] = {}
    pin = ""
    for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
        if match := re.match(r"[a-z0-9-]+==[^ ]+", line):
            pin = match[0]
            found.setdefault(pin, set())
        elif match := re.search(r"--hash=(sha256:[0-9a-f]{64})", line):
            found[pin].add(match[1])
    return found


def test_the_lock_of_the_image_is_a_part_of_the_lock_of_the_developers() -> None:
    run, everything = pins("requirements-run.txt"), pins("requirements.txt")
    assert run
    assert {pin: everything.get(pin) for pin in run} == run
    assert not {pin.partition("==")[0] for pin in run} & {"pytest", "ruff", "mypy", "setuptools"}
