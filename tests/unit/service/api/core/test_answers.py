"""Answers are made away from the event loop, and once per round."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest
from starlette.requests import Request

from service.api.core import answers
from service.api.core.answers import Answers
from service.api.core.paging import Page, Pager
from service.api.core.problems import ProblemError, not_found, unavailable
from service.rounds.latest import Latest
from service.runtime.threads import in_thread
from service.views.model import Model
from tests.factories import group, snapshot
from tests.unit.rules.catalogue.judging import view_of
from tests.unit.service.api.given import World, at_once, service_state

T = TypeVar("T")


class Text(Model):
    """An answer."""

    text: str
    next: str | None = None


def pager(query: str = "") -> Pager:
    scope = {"type": "http", "path": "/x", "query_string": query.encode(), "headers": []}
    return Pager(Request({**scope, "method": "GET", "server": ("localhost", 80)}))


class Maker:
    """Makes an answer, and counts how often."""

    def __init__(self, text: str = "a") -> None:
        self.text = text
        self.calls = 0
        self.error: ProblemError | None = None

    def __call__(self) -> Text:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return Text(text=self.text)


def test_the_same_request_is_answered_once_per_state_however_many_send_it() -> None:
    state, make = service_state(), Maker()

    async def scenario() -> set[bytes]:
        made = Answers(in_thread)
        many = [made.render_once(state, make, pager()) for _ in range(9)]
        bodies = {bytes(answer.body) for answer in await asyncio.gather(*many)}
        assert make.calls == 1
        await made.render_once(state, make, pager("limit=2"))
        await made.render_once(service_state(), make, pager())
        await made.render_once(state, make, pager())
        assert make.calls == 4
        return bodies

    assert asyncio.run(scenario()) == {b'{"text":"a","next":null}'}


def test_an_answer_that_is_made_once_keeps_its_link() -> None:
    state = service_state()

    async def scenario() -> list[str]:
        made = Answers(at_once)

        async def answer() -> str:
            page = pager()
            shown = Text(text="", next=page.page("list", Page([], (7,)))["next"])
            return (await made.render_once(state, lambda: shown, page)).headers["link"]

        return [await answer(), await answer()]

    links = asyncio.run(scenario())
    assert links[0].endswith('>; rel="next"')
    assert links[0] == links[1]


def test_an_error_is_not_kept() -> None:
    state, make = service_state(), Maker()
    make.error = not_found("no")

    async def scenario() -> int:
        made = Answers(at_once)
        with pytest.raises(ProblemError):
            await made.render_once(state, make, pager())
        make.error = None
        return (await made.render_once(state, make, pager())).status_code

    assert (asyncio.run(scenario()), make.calls) == (200, 2)


def test_kept_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_KEPT", 250)
    state, make = service_state(), Maker("x" * 80)

    async def scenario() -> None:
        made = Answers(at_once)
        for number in (1, 2, 3, 3, 2, 1):
            await made.render_once(state, make, pager(f"limit={number}"))

    asyncio.run(scenario())
    assert make.calls == 4, "the oldest was dropped"


@pytest.mark.parametrize(
    "path",
    [
        "clusters",
        "clusters/default",
        "findings",
        "findings/partition_offline-0123456789abcdef",
        "groups",
        "groups/billing",
        "losses",
        "losses/committed_records_lost-0123456789abcdef",
        "partitions",
        "rules",
        "sequences",
        "status",
        "transactions",
    ],
)
def test_no_answer_is_made_on_the_event_loop(path: str) -> None:
    async def full(_function: Callable[[], T], /) -> T:
        raise unavailable("all threads are busy")

    seen = snapshot(groups=(group("billing"),))
    state = service_state(view=view_of([seen]), snapshot=seen)
    client = World(latest=Latest(state), in_thread=full).client()
    assert client.get(f"/api/v1/{path}").json().get("detail") == "all threads are busy"
