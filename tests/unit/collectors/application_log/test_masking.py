"""Secrets in lines of applications never reach the database or a screen."""

from __future__ import annotations

import pytest

from collectors.application_log.masking import masked


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("password=hunter2 user=app", "password=*** user=app", id="assigned"),
        pytest.param("{passwd=hun,ter2}, user=app", "{passwd=***}, user=app", id="with-a-comma"),
        pytest.param('{"apiKey": "a b,c", "topic": "orders"}', '{"apiKey": ***, "topic": "orders"}', id="json"),
        pytest.param("ssl.keystore.password = [hidden]", "ssl.keystore.password = [hidden]", id="hidden-by-kafka"),
        pytest.param("sasl.password: null", "sasl.password: null", id="no-value"),
        pytest.param(
            'sasl.jaas.config=x.PlainLoginModule required username="u" password="p"; next',
            "sasl.jaas.config=***",
            id="jaas-is-secret-as-a-whole",
        ),
        pytest.param("Authorization: Bearer abcdefghijkl.mn", "Authorization: Bearer ***", id="header"),
        pytest.param("jdbc:postgresql://me:pw@db/x failed", "jdbc:postgresql://***@db/x failed", id="address"),
        pytest.param("got eyJhbGciOiJI.eyJzdWIiOiIx.sig_x here", "got *** here", id="jwt"),
        pytest.param("key AKIAABCDEFGHIJKLMNOP used", "key *** used", id="by-form"),
        pytest.param(
            "topic tokens-3, transactionalId=pay-token-1: fenced",
            "topic tokens-3, transactionalId=pay-token-1: fenced",
            id="names-of-kafka-stay-unless-they-look-like-an-assignment",
        ),
    ],
)  # fmt: skip
def test_what_looks_like_a_secret_is_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_a_long_text_costs_no_more_than_its_length() -> None:
    assert masked("password" * 20_000).startswith("password")
    assert len(masked("token=" + "x" * 100_000)) < 100_000
