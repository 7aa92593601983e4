"""Each check has a page, made of its own words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rules.pages import IncompleteRuleError
from rules.posture.all_checks import CHECKS, RegisteredCheck
from rules.posture.pages import check_page, with_checks
from tests.site.pages import DOCS

PAGES = DOCS / "posture"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.meta.check_id)
def test_page_says_what_the_check_says(check: RegisteredCheck) -> None:
    written = (PAGES / f"{check.meta.check_id}.md").read_text(encoding="utf-8")
    assert written == check_page(check), "run `make golden`"
    for advice in check.advice.values():
        assert advice.consequence
        assert advice.fix


def test_there_is_a_page_for_every_check_and_no_other() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == {c.meta.check_id for c in CHECKS}


def test_the_list_of_checks_is_up_to_date() -> None:
    text = (DOCS / "posture.md").read_text(encoding="utf-8")
    assert text == with_checks(text), "run `make golden`"


def test_a_check_that_leaves_something_unsaid_is_rejected() -> None:
    with pytest.raises(IncompleteRuleError, match="How to set it"):
        check_page(replace(CHECKS[0], text=__doc__))
