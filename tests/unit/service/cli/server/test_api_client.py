"""Whatever answers at the address, a command says what it is, and never a token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import httpx2
import pytest

from rules.errors import (
    AuthenticationError,
    CollectError,
    ConflictError,
    NotThereError,
    RequestError,
    SettingsError,
    TidemarkError,
    UnreachableError,
)
from service.cli.main import exit_code_of
from service.cli.server.api_client import ApiClient
from service.cli.server.server_options import client_of, server_options
from service.terminal.exit_codes import ExitCode
from tests.unit.service.cli.mock_connection import MockConnection

SERVER = "http://tidemark.example:8780"
SECRET = "tidemark_not-to-be-told"  # noqa: S105 - of nobody
STAMP = {"as_of": None, "is_current": True}
Handler = Callable[[httpx2.Request], httpx2.Response]


def client(handler: Handler, *, server: str = SERVER, token: str | None = None) -> ApiClient:
    return ApiClient(server, token=token, connection=MockConnection(handler, SERVER))


def answering(status: int, **given: Any) -> ApiClient:
    return client(lambda _: httpx2.Response(status, **given))


def problem(status: int, detail: str) -> dict[str, Any]:
    body = f'{{"status": {status}, "detail": "{detail}"}}'
    return {"content": body, "headers": {"content-type": "application/problem+json"}}


def test_it_asks_the_api_below_any_path() -> None:
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json=STAMP)

    for server in (SERVER, f"{SERVER}/", f"{SERVER}/behind/a/proxy"):
        assert client(handler, server=server, token=SECRET).get("losses", limit=3) == STAMP
    assert [str(request.url).removeprefix(SERVER) for request in seen] == [
        "/api/v1/losses?limit=3",
        "/api/v1/losses?limit=3",
        "/behind/a/proxy/api/v1/losses?limit=3",
    ]
    assert {request.headers["authorization"] for request in seen} == {f"Bearer {SECRET}"}


def test_pages_are_followed_to_the_end() -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        cursor = request.url.params.get("cursor")
        assert request.url.params["class"] == "possibly_lost"
        return httpx2.Response(200, json={**STAMP, "next": None if cursor == "b" else "b"})

    pages = list(client(handler).pages("losses", **{"class": "possibly_lost"}))
    assert [page["next"] for page in pages] == ["b", None]


def test_a_list_without_end_is_an_error() -> None:
    endless = answering(200, json={**STAMP, "next": "again"})
    with pytest.raises(CollectError, match="more than 1000 pages"):
        list(endless.pages("losses"))


@pytest.mark.parametrize(
    "answer",
    [
        {"status_code": 200, "html": "<h1>It works</h1>"},
        {"status_code": 200, "json": []},
        {"status_code": 200, "json": {"as_of": None}},
        {"status_code": 200, "content": b"\xff"},
        {"status_code": 204},
        {"status_code": 404, "html": "nothing"},
        {"status_code": 404, "json": {"detail": "Not Found"}},
        {"status_code": 302},
        {"status_code": 500, "headers": {"content-type": "application/problem+json"}},
    ],
)
def test_what_answers_in_another_form_is_no_tidemark(answer: dict[str, Any]) -> None:
    with pytest.raises(UnreachableError, match=r"is not a Tidemark: it answers \d{3}") as found:
        client(lambda _: httpx2.Response(**answer)).find("losses/x")
    assert exit_code_of(found.value) is ExitCode.UNREACHABLE


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"status_code": 502, "html": "no upstream"}, "behind it does not: 502 Bad Gateway"),
        ({"status_code": 503, "json": {}}, "behind it does not: 503 Service Unavailable"),
        ({"status_code": 504}, "behind it does not: 504 Gateway Timeout"),
        (
            {"status_code": 302, "headers": {"location": "https://sso.example/in?state=secret"}},
            "it answers 302 Found, redirects to https://sso.example/in",
        ),
    ],
)
def test_what_is_before_a_tidemark_is_not_taken_for_it(answer: dict[str, Any], words: str) -> None:
    with pytest.raises(UnreachableError) as found:
        client(lambda _: httpx2.Response(**answer)).find("losses/x")
    assert str(found.value).endswith(words)


def test_nothing_there_is_an_answer_where_it_may_be_one() -> None:
    there_is_none = problem(404, "there is no such loss")
    assert answering(404, **there_is_none).find("losses/x") is None
    with pytest.raises(UnreachableError, match="has no /api/v1/losses: an older Tidemark"):
        answering(404, **there_is_none).get("losses")


@pytest.mark.parametrize("status", [401, 403])
def test_a_rejection_says_what_to_do(status: int) -> None:
    needed = problem(status, "A bearer token with scope read is needed.")
    with pytest.raises(AuthenticationError, match=r"is needed\. Try --token-file with a token"):
        answering(status, **needed).get("losses")

    def refuse(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, **problem(status, "The token is not valid."))

    with pytest.raises(AuthenticationError, match=r"not valid\. Try another token") as found:
        client(refuse, token=SECRET).get("losses")
    assert SECRET not in str(found.value)
    assert exit_code_of(found.value) is ExitCode.AUTHENTICATION


def test_a_proxy_that_refuses_may_want_a_token_too() -> None:
    with pytest.raises(AuthenticationError, match="401 Unauthorized Try --token-file"):
        answering(401, html="who are you").get("losses")


def test_a_tidemark_that_cannot_tell_now_is_no_unreachable_one() -> None:
    with pytest.raises(CollectError, match="cannot answer: no round has been made yet") as found:
        answering(503, **problem(503, "no round has been made yet")).get("losses")
    assert exit_code_of(found.value) is ExitCode.INCOMPLETE


def test_what_can_be_edited_is_changed_as_it_was_seen() -> None:
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        if request.method == "DELETE":
            return httpx2.Response(204)
        return httpx2.Response(200, json=STAMP, headers={"etag": '"1"'})

    api = client(handler)
    was = api.observe("silences/x")
    assert (was.document, was.etag) == (STAMP, '"1"')
    assert api.change("PUT", "silences/x", {"comment": "y"}, etag=was.etag).document == STAMP
    assert api.change("DELETE", "silences/x", etag=was.etag).document == {}
    assert [request.headers.get("if-match") for request in seen] == [None, '"1"', '"1"']
    assert seen[1].read() == b'{"comment":"y"}'


def test_what_is_made_is_made_once_however_often_it_is_sent() -> None:
    keys: list[str] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        keys.append(request.headers["idempotency-key"])
        if len(keys) == 1:
            raise UnreachableError("slow")
        return httpx2.Response(202, json=STAMP)

    api = client(handler)
    assert api.change("POST", "jobs/x/run").document == STAMP
    api.change("POST", "jobs/x/run")
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, RequestError, ExitCode.USAGE),
        (413, RequestError, ExitCode.USAGE),
        (422, RequestError, ExitCode.USAGE),
        (404, NotThereError, ExitCode.NOTHING_MATCHED),
        (409, ConflictError, ExitCode.CONFLICT),
        (412, ConflictError, ExitCode.CONFLICT),
        (503, CollectError, ExitCode.INCOMPLETE),
    ],
)
def test_what_is_not_done_is_told_in_its_own_words(
    status: int, kind: type[TidemarkError], code: ExitCode
) -> None:
    with pytest.raises(kind, match="ends before it starts") as found:
        answering(status, **problem(status, "ends before it starts")).change("POST", "silences")
    assert exit_code_of(found.value) is code


def test_a_rejected_change_names_the_scope_that_it_needs() -> None:
    needed = problem(403, "Scope ack is needed.")
    denying = MockConnection(lambda _: httpx2.Response(403, **needed), SERVER)
    api = ApiClient(SERVER, token=SECRET, scope="ack", connection=denying)
    with pytest.raises(AuthenticationError, match="another token of scope ack"):
        api.change("POST", "alerts/x/close")


@click.command()
@server_options
def asks(**options: Any) -> str:
    with client_of(options) as api:
        return api.server


def server_of(*arguments: str) -> object:
    return asks.main(args=list(arguments), standalone_mode=False)


def test_a_flag_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMARK_SERVER", raising=False)
    assert server_of() == "http://127.0.0.1:8780"
    monkeypatch.setenv("TIDEMARK_SERVER", SERVER)
    assert server_of() == SERVER
    assert server_of("--server", "https://[::1]/a/") == "https://[::1]/a"


@pytest.mark.parametrize(
    "server",
    [
        "",
        "127.0.0.1:8780",
        "ftp://a",
        "http://",
        "http://a:0",
        "http://a:x",
        "http://[::1",
        "http://a/?b",
        "http://a/#b",
        "http://a b",
        "http://a\n",
    ],
)
def test_what_is_no_address_is_wrong_usage(server: str) -> None:
    with pytest.raises(click.BadParameter, match="is not an address like"):
        server_of("--server", server)


def test_a_secret_in_an_address_is_rejected_and_not_told() -> None:
    with pytest.raises(click.BadParameter, match="must not hold a user name or password") as found:
        server_of("--server", f"http://me:{SECRET}@a")
    assert SECRET not in str(found.value)


@pytest.mark.parametrize("content", ["", "\n", "a b", "a\nb", "ä", "a\0b"])
def test_a_file_without_a_token_is_a_wrong_setting(content: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(content)
    with pytest.raises(SettingsError, match="holds no token"):
        server_of("--token-file", str(file))


def test_a_token_may_end_with_a_newline(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{SECRET}\n")
    assert server_of("--server", SERVER, "--token-file", str(file)) == SERVER
