"""Links of all pages lead to files and headings that exist, and the site's navigation has every page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pytest
import yaml

from tests.site.hooks import OUTSIDE, ROOT, expanded
from tests.site.pages import DOCS, anchors, links, name_of, pages

NAVIGATION: Final = ROOT / "mkdocs.yml"
FAR: Final = ("https://", "http://", "mailto:")


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_lead_to_what_exists(page: Path) -> None:
    wrong = [
        f"line {line}: {link}" for line, link in links(page) if not _leads_somewhere(page, link)
    ]
    assert wrong == []


def test_links_are_seen_at_all() -> None:
    """Wherever links stand: in tables, over two lines, with an anchor, as an image."""
    counted = sum(1 for page in pages() for _ in links(page))
    assert counted > 500
    assert "docs/dashboards/losses.png" in {link for _, link in links(ROOT / "README.md")}


@pytest.mark.parametrize(
    ("link", "leads"),
    [
        ("loss.md", True),
        ("loss.md#classes", True),
        ("../CONTRIBUTING.md", True),
        ("deploy/kubernetes", True),
        ("https://kafka.apache.org/", True),
        ("lost.md", False),
        ("loss.md#klasses", False),
        ("#no-such-heading", False),
        ("/docs/loss.md", False),
        ("../../elsewhere.md", False),
    ],
)
def test_a_link_is_judged_by_its_file_and_its_heading(link: str, *, leads: bool) -> None:
    assert _leads_somewhere(DOCS / "tx.md", link) is leads


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_headings_have_anchors_of_their_own(page: Path) -> None:
    """GitHub and MkDocs number the second one in different ways, so that no link could lead there."""
    if page.name == "CHANGELOG.md":
        return  # repeats its headings in each version
    assert [anchor for anchor, count in Counter(anchors(page)).items() if count > 1] == []


def test_the_navigation_has_every_page_once() -> None:
    """A new page gets its place in mkdocs.yml."""
    nav = yaml.safe_load(NAVIGATION.read_text(encoding="utf-8"))["nav"]
    named = Counter(_pages_of(expanded(nav, DOCS)))
    expected = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    expected |= {name for name in OUTSIDE if name.endswith(".md")}
    assert named == Counter(expected)


def _leads_somewhere(page: Path, link: str) -> bool:
    if link.startswith(FAR):
        return True
    address, _, anchor = link.partition("#")
    target = (page.parent / unquote(address)).resolve() if address else page
    if address.startswith("/") or not target.is_relative_to(ROOT) or not target.exists():
        return False
    return not anchor or (target.suffix == ".md" and anchor in anchors(target))


def _pages_of(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
        return
    for entry in nav.values() if isinstance(nav, dict) else nav:
        yield from _pages_of(entry)
