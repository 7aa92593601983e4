"""What a secret allows: who waits for the database, how long, and how often it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from service.api.core import rights
from service.api.core.problems import ProblemError, unavailable
from service.api.core.rights import Tokens
from service.storage.tokens.tokens import Scope
from tests.factories import at
from tests.unit.service.api.given import AWAY, STATIC, FakeTokens

T = TypeVar("T")
SECRET = "tidemark_of-the-database"  # noqa: S105 - a made-up one
UNKNOWN = "tidemark_never-seen"
ABLE = frozenset({Scope.READ, Scope.ACK})


@dataclass
class Asked:
    """Tokens on a database that answers when it may, and a clock."""

    database: FakeTokens = field(default_factory=lambda: FakeTokens(known={SECRET: ABLE}))
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    now: float = 0.0
    clock_is_off: float = 0.0
    queries: int = 0
    refuses: bool = False

    def __post_init__(self) -> None:
        self.answers.set()
        self.tokens = Tokens(
            self.database,
            static=STATIC,
            in_thread=self,
            monotonic=lambda: self.now,
            utc_now=lambda: at(self.now + self.clock_is_off),
        )

    async def __call__(self, function: Callable[[], T], /) -> T:
        self.queries += 1
        if self.refuses:
            raise unavailable("too many requests wait for the database")
        await self.answers.wait()
        return function()

    async def may(self, secret: str = SECRET, right: Scope = Scope.READ) -> frozenset[Scope] | None:
        """Return the rights that a request is given, and let what goes on beside it go on."""
        found = await self.tokens.grant(secret, right)
        for _ in range(9):
            await asyncio.sleep(0)
        return None if found is None else found.scopes


def run(scenario: Callable[[Asked], Awaitable[None]]) -> None:
    async def prepared() -> None:
        await scenario(Asked())

    asyncio.run(prepared())


def test_a_token_that_was_verified_is_asked_for_again_soon_beside_the_request() -> None:
    async def scenario(made: Asked) -> None:
        assert await made.may() == ABLE
        made.now = rights.TRUSTED_SECONDS - 0.1
        assert (await made.may(), made.queries) == (ABLE, 1)
        made.now = rights.TRUSTED_SECONDS
        assert (await made.may(), made.queries) == (ABLE, 2)
        assert (await made.may(), made.queries) == (ABLE, 2)

    run(scenario)


def test_a_known_token_waits_for_no_database_and_is_asked_for_once_at_a_time() -> None:
    async def scenario(made: Asked) -> None:
        await made.may()
        made.answers.clear()
        made.now = rights.TRUSTED_SECONDS
        async with asyncio.timeout(1):
            assert [await made.may() for _ in range(20)] == [ABLE] * 20
        assert made.queries == 2

    run(scenario)


def test_a_revoked_token_works_once_more_at_most() -> None:
    async def scenario(made: Asked) -> None:
        await made.may()
        del made.database.known[SECRET]
        made.now = rights.TRUSTED_SECONDS
        assert [await made.may(), await made.may()] == [ABLE, None]

    run(scenario)


def test_a_token_that_was_not_used_for_long_is_asked_for_first() -> None:
    async def scenario(made: Asked) -> None:
        await made.may()
        del made.database.known[SECRET]
        made.now = rights.UNUSED_SECONDS
        assert await made.may() is None

    run(scenario)


def test_a_revoked_token_changes_nothing_any_more() -> None:
    async def scenario(made: Asked) -> None:
        assert await made.may(right=Scope.ACK) == await made.may(right=Scope.ACK) == ABLE
        del made.database.known[SECRET]
        assert [await made.may(), await made.may(right=Scope.ACK)] == [ABLE, None]
        asked = made.queries
        assert await made.may(right=Scope.ACK) is None
        assert made.queries == asked, "a wrong guess costs one query in five seconds"

    run(scenario)


def test_nobody_changes_anything_while_the_database_gives_no_answer() -> None:
    async def scenario(made: Asked) -> None:
        await made.may()
        made.database.error = AWAY
        with pytest.raises(ProblemError, match="does not answer"):
            await made.may(right=Scope.ACK)
        assert await made.may() == ABLE

    run(scenario)


@pytest.mark.parametrize("error", ["away", "busy"])
def test_a_known_token_stays_valid_while_the_database_gives_no_answer(error: str) -> None:
    async def scenario(made: Asked) -> None:
        await made.may()
        made.database.error, made.refuses = AWAY, error == "busy"
        for made.now in (61, 62, 70, 500):
            assert await made.may() == ABLE
        assert made.queries == 3, "a database that is away is not asked each time"
        made.database.error, made.refuses = None, False
        made.database.known.clear()
        made.now = 511
        assert [await made.may(), await made.may()] == [ABLE, None]

    run(scenario)


@pytest.mark.parametrize("right", Scope)
def test_a_token_that_expires_while_the_database_is_away_has_no_right_any_more(
    right: Scope,
) -> None:
    async def scenario(made: Asked) -> None:
        made.database.expires = at(30)
        assert await made.may() == ABLE
        made.database.error = AWAY
        made.now = 29.9
        assert await made.may() == ABLE
        made.now = 30
        assert await made.may(right=right) is None
        made.now, made.clock_is_off = 31, -20
        assert await made.may(right=right) is None, "a clock that is set back revives nothing"

    run(scenario)


def test_a_revocation_that_was_seen_stays_while_the_database_is_away() -> None:
    async def scenario(made: Asked) -> None:
        await made.may()
        known = dict(made.database.known)
        made.database.known.clear()
        assert await made.may(right=Scope.ACK) is None
        made.database.error = AWAY
        for made.now in (1, 10, 500):
            assert [await made.may(right=right) for right in Scope] == [None] * len(Scope)
        made.database.error, made.database.known = None, known
        made.now = 511
        assert await made.may() == ABLE, "the database has the last word"

    run(scenario)


def test_log_lines_are_taken_for_a_minute_after_the_last_confirmation() -> None:
    async def scenario(made: Asked) -> None:
        await made.may()
        made.database.error = AWAY
        for made.now in (11, 30, 59.9):
            assert await made.may(right=Scope.INGEST) == ABLE
        made.now = 60
        with pytest.raises(ProblemError, match="does not answer"):
            await made.may(right=Scope.INGEST)
        assert await made.may() == ABLE
        made.database.error = None
        assert await made.may(right=Scope.INGEST) == ABLE

    run(scenario)


def test_a_query_that_began_before_a_change_does_not_confirm_it() -> None:
    async def scenario(made: Asked) -> None:
        await made.may()
        made.answers.clear()
        made.now = rights.TRUSTED_SECONDS
        await made.may()
        change = asyncio.create_task(made.may(right=Scope.ACK))
        await asyncio.sleep(0)
        made.answers.set()
        assert (await change, made.queries) == (ABLE, 3)

    run(scenario)


def test_however_many_wrong_secrets_wait_a_valid_one_is_verified_by_the_next_query() -> None:
    async def scenario(made: Asked) -> None:
        made.answers.clear()
        wrong = [asyncio.create_task(made.may(f"{UNKNOWN}-{number}")) for number in range(100)]
        valid = asyncio.create_task(made.may())
        await asyncio.sleep(0)
        made.answers.set()
        assert await valid == ABLE
        assert await asyncio.gather(*wrong) == [None] * 100
        assert made.queries == 1

    run(scenario)


def test_requests_with_unknown_secrets_that_wait_are_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rights, "MAX_STRANGERS", 3)

    async def scenario(made: Asked) -> None:
        await made.may()
        made.answers.clear()
        waiting = [asyncio.create_task(made.may(UNKNOWN)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(ProblemError, match="does not answer"):
            await made.may(f"{UNKNOWN}-4")
        change = asyncio.create_task(made.may(right=Scope.ACK))
        await asyncio.sleep(0)
        made.answers.set()
        assert await change == ABLE, "a known one may wait"
        assert await asyncio.gather(*waiting) == [None] * 3

    run(scenario)


@pytest.mark.parametrize("error", ["away", "hangs"])
def test_an_unknown_token_is_unavailable_while_the_database_gives_no_answer(
    error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "ANSWER_SECONDS", 0.01)

    async def scenario(made: Asked) -> None:
        if error == "hangs":
            made.answers.clear()
        else:
            made.database.error = AWAY
        async with asyncio.timeout(1):
            with pytest.raises(ProblemError, match="does not answer") as caught:
                await made.may(UNKNOWN)
        assert caught.value.status == 503
        assert await made.may(STATIC) == frozenset({Scope.READ})

    run(scenario)


def test_what_came_too_late_for_a_request_is_there_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rights, "ANSWER_SECONDS", 0.01)

    async def scenario(made: Asked) -> None:
        made.answers.clear()
        for _ in range(3):
            with pytest.raises(ProblemError):
                await made.may()
        made.answers.set()
        assert (await made.may(), made.queries) == (ABLE, 1)

    run(scenario)


def test_the_same_wrong_guess_costs_one_query_in_five_seconds() -> None:
    async def scenario(made: Asked) -> None:
        assert [await made.may(UNKNOWN) for _ in range(9)] == [None] * 9
        assert made.queries == 1
        made.database.known[UNKNOWN] = ABLE
        made.now = 4.9
        assert await made.may(UNKNOWN) is None
        made.now = 5
        assert await made.may(UNKNOWN) == ABLE

    run(scenario)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rights, "MAX_REMEMBERED", 3)

    async def scenario(made: Asked) -> None:
        for number in range(4):
            await made.may(f"{UNKNOWN}-{number}")
        await made.may(f"{UNKNOWN}-3")
        assert made.queries == 4
        await made.may(f"{UNKNOWN}-0")
        assert made.queries == 5, "the oldest was forgotten"

    run(scenario)
