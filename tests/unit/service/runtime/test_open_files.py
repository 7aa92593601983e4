"""How many files the process may open."""

from __future__ import annotations

import resource

import pytest

from service.runtime.open_files import FILES, allow_files

NO_LIMIT = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "taken"),
    [
        pytest.param(1024, 524_288, FILES, id="as most systems set them"),
        pytest.param(1024, NO_LIMIT, FILES, id="no hard limit"),
        pytest.param(256, 1024, 1024, id="no more than the hard limit"),
        pytest.param(65_536, 65_536, None, id="more is allowed already"),
        pytest.param(NO_LIMIT, NO_LIMIT, None, id="everything is allowed"),
    ],
)
def test_the_soft_limit_is_raised_and_never_lowered(
    soft: int, hard: int, taken: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: limits.append(limit))
    allow_files()
    assert limits == ([] if taken is None else [(taken, hard)])
