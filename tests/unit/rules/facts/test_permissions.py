"""The declaration of permissions names what exists, and its page is made of it."""

from __future__ import annotations

from pathlib import Path

from collectors.wire import api
from collectors.wire.api import Api
from rules.catalogue.all_rules import EVERY
from rules.facts.permissions import NEEDED, with_permissions

PAGE = Path(__file__).parents[4] / "docs" / "permissions.md"
REQUESTS = {value.name for value in vars(api).values() if isinstance(value, Api)}


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_permissions(page)
    assert all(f"| {needed.operation} on {needed.resource}" in page for needed in NEEDED)


def test_each_names_rules_and_requests_that_exist() -> None:
    rules = {rule.meta.rule_id for rule in EVERY}
    assert {rule for needed in NEEDED for rule in needed.rules} <= rules
    assert {request for needed in NEEDED for request in needed.requests} <= REQUESTS


def test_keys_and_titles_are_of_one_permission() -> None:
    assert len({needed.key for needed in NEEDED}) == len(NEEDED)
    assert len({needed.title for needed in NEEDED}) == len(NEEDED)
