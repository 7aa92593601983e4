"""Who may change what: each scope alone, revoked tokens, and web pages."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, create_engine

from service.storage.tokens import tokens
from service.storage.tokens.tokens import Scope
from tests.factories import NOON, at
from tests.integration.api.given import Api

NOTHING = "/alerts/0123456789abcdef"
SOME = "00000000-0000-0000-0000-000000000000"
CHANGES = [
    ("POST", f"{NOTHING}/acknowledge", Scope.ACK),
    ("DELETE", f"{NOTHING}/acknowledge", Scope.ACK),
    ("POST", f"{NOTHING}/feedback", Scope.ACK),
    ("DELETE", f"{NOTHING}/feedback", Scope.ACK),
    ("POST", f"{NOTHING}/close", Scope.ACK),
    ("POST", "/silences", Scope.SILENCE),
    ("PUT", f"/silences/{SOME}", Scope.SILENCE),
    ("DELETE", f"/silences/{SOME}", Scope.SILENCE),
    ("POST", "/receivers/none/test", Scope.ADMIN),
    ("POST", "/deliveries/1/replay", Scope.ADMIN),
    ("POST", "/jobs/none/run", Scope.ADMIN),
]
READS = ["/alerts", NOTHING, "/silences", "/receivers", "/deliveries", "/deliveries/1", "/jobs"]


@pytest.fixture(scope="module")
def api(engine: Engine) -> Api:
    return Api.fresh(engine, is_loopback=False)


@pytest.fixture(scope="module")
def here(api: Api) -> Api:
    """Give the same cluster's API, asked from the machine itself."""
    return Api(api.engine, api.cluster)


@pytest.fixture(scope="module")
def given(api: Api) -> dict[Scope, str]:
    """Give everybody one scope."""
    return {scope: api.token(f"only {scope}", scope) for scope in Scope}


@pytest.mark.parametrize(("method", "path", "needed"), CHANGES)
def test_a_change_needs_its_own_scope(
    api: Api, given: dict[Scope, str], method: str, path: str, needed: Scope
) -> None:
    assert api.ask(method, path, {}).status_code == 401
    for scope, who in given.items():
        answer = api.ask(method, path, {}, Authorization=who)
        if scope is needed:
            assert answer.status_code in (404, 422), "it was let in"
        else:
            assert answer.status_code == 403
            assert f'scope="{needed}"' in answer.headers["www-authenticate"]


@pytest.mark.parametrize("path", READS)
def test_to_observation_needs_scope_read(api: Api, given: dict[Scope, str], path: str) -> None:
    may = {
        scope
        for scope, who in given.items()
        if api.ask("GET", path, Authorization=who).status_code != 403
    }
    assert may == {Scope.READ}


def test_a_revoked_token_changes_nothing_any_more(api: Api) -> None:
    eve = api.token("eve", Scope.SILENCE)
    assert api.ask("POST", "/silences", {}, Authorization=eve).status_code == 422
    tokens.revoke(api.engine, "eve", api.now)
    answer = api.ask("POST", "/silences", {}, Authorization=eve)
    assert answer.status_code == 401
    assert answer.json()["detail"] == "The token is not valid: it is unknown, revoked or expired."


def test_an_expired_token_changes_nothing_any_more(api: Api) -> None:
    secret = tokens.create(api.engine, "guest", [Scope.SILENCE], api.now, expires=at(60))
    guest = f"Bearer {secret}"
    statuses = []
    for api.now in (at(0), at(59), at(60)):
        statuses.append(api.ask("POST", "/silences", {}, Authorization=guest).status_code)
    api.now = NOON
    assert statuses == [422, 422, 401]


def test_an_expired_token_reads_nothing_any_more_while_the_database_is_away(engine: Engine) -> None:
    api = Api.fresh(engine, is_loopback=False)
    secret = tokens.create(engine, "visitor", [Scope.READ], api.now, expires=at(60))
    visitor = f"Bearer {secret}"
    assert api.ask("GET", "/status", Authorization=visitor).status_code == 200
    api.engine = create_engine("postgresql+psycopg://127.0.0.1:1/away")
    statuses = []
    for api.now in (at(59), at(60), at(3600)):
        statuses.append(api.ask("GET", "/status", Authorization=visitor).status_code)
    assert statuses == [200, 401, 401]


def test_on_the_machine_itself_a_token_that_is_given_has_to_be_valid(here: Api) -> None:
    ann = here.token("ann", Scope.ACK)
    assert here.ask("POST", "/silences", {}).status_code == 422
    assert here.ask("POST", "/silences", {}, Authorization="Bearer none").status_code == 401
    assert here.ask("POST", "/silences", {}, Authorization="Basic x").status_code == 401
    assert here.ask("POST", "/silences", {}, Authorization=ann).status_code == 403
    assert here.ask("GET", "/silences", Authorization="Bearer none").status_code == 200


@pytest.mark.parametrize(("method", "path", "_needed"), CHANGES)
def test_a_web_page_changes_nothing_on_the_machine_that_shows_it(
    here: Api, method: str, path: str, _needed: Scope
) -> None:
    answer = here.ask(method, path, {}, Origin="https://evil.example")
    assert answer.status_code == 403
    assert "a web page sends this" in answer.json()["detail"]
    assert here.ask(method, path, {}, Host="evil.example").status_code == 403
