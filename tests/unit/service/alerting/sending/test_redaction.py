"""What is kept of answers."""

from __future__ import annotations

from service.alerting.sending.answers import KEPT, excerpt, redact
from tests.unit.service.alerting.notifications.given import slack, webhook


def test_a_secret_is_hidden_wherever_it_is_repeated() -> None:
    said = 'No service for {"path": "\\/services\\/T0AA\\/B0BB\\/xyzzy"} at T0AA'
    kept = redact(said, slack().secrets)
    assert "T0AA" not in kept
    assert "xyzzy" not in kept.lower()


def test_an_escaped_query_is_hidden_value_by_value() -> None:
    secrets = webhook().secrets
    assert "query-secret" not in redact("/path-secret?a=1&amp;key=query-secret", secrets)


def test_a_longer_secret_is_hidden_before_a_part_of_it() -> None:
    assert redact("abcdefgh", ["abcd", "abcdefgh"]) == "[hidden]"


def test_short_texts_are_no_secrets() -> None:
    assert redact("a v2 of /", ["/", "v2", ""]) == "a v2 of /"


def test_only_the_begin_is_kept_and_cut_after_it_was_hidden() -> None:
    reply = b"x" * (KEPT - 3) + b"secret-token" + b"y" * 5000
    kept = excerpt(reply, ["secret-token"])
    assert len(kept) == KEPT
    assert kept.endswith("x[hi")


def test_what_is_no_text_is_shown_as_such() -> None:
    assert excerpt(b"a\xff\x00\x1b[31m\n\tb", []) == "a��" + "�[31m\n\tb"
