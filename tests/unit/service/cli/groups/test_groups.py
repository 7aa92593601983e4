"""Groups and lags as a person reads them: from a running Tidemark, and straight from a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rules.errors import CollectError, NotThereError, SettingsError
from rules.facts.gap import GapCause, GapScope
from rules.facts.snapshot import Snapshot
from rules.view import View
from service.cli.groups import answers, observing
from service.cli.groups.command import exit_code
from service.cli.groups.lag import command as lag
from service.cli.groups.tables import render_group, render_lag, render_list
from service.observe.cluster_reader import Scope
from service.rounds.latest import RoundOutcome
from service.terminal.exit_codes import ExitCode
from tests.factories import (
    at,
    commits,
    described,
    gap,
    group,
    member,
    offsets,
    partitions,
    snapshot,
)
from tests.schemas import validate
from tests.unit.rules.catalogue.judging import view_of
from tests.unit.service.api.given import client_of
from tests.unit.service.cli.app_api import AppApi
from tests.unit.service.cli.printing import at_terminal, printed

LEFT = member("m-1", 0, host="10.0.0.1")
STAYS = member("m-2", 1, instance_id="pod-2")


def two_rounds() -> View:
    """Return rounds in which a member left: of its partition 50 offsets are unread."""
    return view_of(
        [
            snapshot(
                taken_at=at(15 * number),
                partitions=partitions({"orders": 3}),
                offsets=offsets(3, last_stable_offset=[100, 100, 90]),
                groups=(described(*members, epoch=7 + number, assignor="uniform"),),
                commits=commits((0, 0, 50), (0, 1, 100), (0, 2, 90)),
            )
            for number, members in enumerate([(LEFT, STAYS), (STAYS,)])
        ]
    )


@dataclass
class GroupsApi(AppApi):
    """A service whose database is away, so that it cannot say what is usual; or which says this."""

    usual: tuple[dict[str, object], ...] = ()

    def find(self, path: str, **query: str | int) -> Mapping[str, Any] | None:
        """Answer as a service does."""
        if path != "baselines/series":
            return super().find(path, **query)
        if not self.usual:
            raise CollectError("the database cannot be reached")
        return {"run": {"run_id": "r"}, "items": list(self.usual)}


def served(view: View, *usual: dict[str, object]) -> GroupsApi:
    """Return the service after these rounds."""
    seen = view.snapshot
    outcome = RoundOutcome.GAPS if seen.gaps else RoundOutcome.COMPLETE
    client = client_of(snapshot=seen, view=view, at=seen.taken_at, outcome=outcome)
    return GroupsApi(client, usual=usual)


def lines(text: str) -> list[str]:
    """Return the lines without the spaces that align them."""
    return [" ".join(line.split()) for line in text.splitlines()]


class Source:
    """A cluster that is observed the same again and again."""

    def __init__(self, seen: Snapshot) -> None:
        self.seen = seen

    def read(self, scope: Scope) -> Snapshot:
        """Return the observation."""
        assert scope.groups is not None
        return self.seen

    def close(self) -> None:
        """Nothing is open."""


def test_a_group_is_shown_with_members_owners_and_rebalances() -> None:
    document = answers.group_from(served(two_rounds()), "billing")
    shown = lines(printed(render_group(document)))
    assert "state Stable, 1 member" in shown
    assert "MEMBERS (1)" in shown
    assert "client-of-m-2 10.0.0.7 orders: 1 nothing to read on 1 m-2 (instance pod-2)" in shown
    assert "orders-0 50 - lag NOBODY (last: client-of-m-1 at 10.0.0.1)" in shown
    assert "orders-1 0 - nothing to read client-of-m-2 at 10.0.0.7" in shown
    assert "orders-2 0/10 - open transaction NOBODY" in shown
    assert "REBALANCES of the last hour (at least 1)" in shown
    assert "2025-06-02 12:00:15 1 0 1 1 8" in shown
    assert exit_code(document) is ExitCode.OK
    of_many = {**document, "unowned_count": len(document["unowned"]) + 2}
    more = "2 more partitions that nobody owns: the last owner is not shown"
    assert more in lines(printed(render_group(of_many)))
    assert more not in shown


def test_a_lag_keeps_its_verdict_and_owner_on_eighty_and_on_forty_columns() -> None:
    document = answers.group_from(served(two_rounds()), "billing")
    for width in (80, 40):
        text = printed(render_lag(document), width)
        for words in ("orders-0", "NOBODY", "open transaction", "client-of-m-2"):
            assert words in text, width
    assert max(map(len, printed(render_lag(document), 80).splitlines())) <= 80


def test_groups_are_listed_with_both_lags() -> None:
    document = answers.list_from(served(two_rounds()), {})
    validate("groups ls", document)
    assert "billing Stable consumer 1 3 50/60 -" in lines(printed(render_list(document)))


def test_what_is_usual_of_a_lag_is_shown_where_it_is_known() -> None:
    band = {"least": 0.5, "most": 3.25, "expected": 1.0}
    series: list[dict[str, object]] = [
        {"group": "billing", "topic": "orders", "partition": None, "usual": band},
        {"group": "billing", "topic": "audit", "partition": None, "usual": None},
        {"group": "billing-2", "topic": "orders", "partition": None, "usual": band},
    ]
    document = answers.group_from(served(two_rounds(), *series), "billing")
    usual = [line for line in lines(printed(render_lag(document))) if line.startswith("usual")]
    assert usual == ["usual now on orders: 0.5 to 3.2 s (expected 1 s)"]


def test_a_cluster_answers_as_a_service_does_but_for_what_one_observation_cannot_know() -> None:
    view = two_rounds()
    direct = observing.group_of(Source(view.snapshot), "billing")
    from_service = answers.group_from(served(view), "billing")
    assert direct.keys() == from_service.keys()
    for each in (direct, from_service):
        validate("groups show", each)
        validate("lag", each)
    for same in ("group", "members", "partitions"):
        assert direct[same] == from_service[same]
    assert (direct["rebalances"], direct["unowned"]) == (None, None)
    assert "Rebalances are known to a running Tidemark only" in printed(render_group(direct))


def test_what_was_not_described_is_not_known_and_not_empty() -> None:
    hidden = snapshot(
        groups=(group(),),
        commits=commits((0, 0, 50)),
        gaps=(gap(scope=GapScope.MEMBERS, cause=GapCause.NOT_AUTHORIZED, group="billing"),),
    )
    document = observing.group_of(Source(hidden), "billing")
    shown = lines(printed(render_group(document)))
    assert "The members could not be described." in shown
    assert "orders-0 50 - lag not known" in shown
    assert "NOT SEEN" in shown
    assert exit_code(document) is ExitCode.INCOMPLETE


def test_the_beginning_of_a_group_suffices_straight_from_a_cluster_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view = two_rounds()

    class Scoped(Source):
        def read(self, scope: Scope) -> Snapshot:
            assert scope.groups is not None
            return self.seen if scope.groups.fullmatch("billing") else snapshot()

    with pytest.raises(NotThereError, match="did you mean billing"):
        observing.group_of(Scoped(view.snapshot), "bill")
    at_terminal(monkeypatch)
    document = observing.group_of(Scoped(view.snapshot), "bill")
    assert document["group"]["group"] == "billing"
    with pytest.raises(NotThereError, match="did you mean billing"):
        observing.group_of(Scoped(view.snapshot), "biling")


def test_a_group_that_is_not_there_differs_from_one_that_was_not_seen() -> None:
    with pytest.raises(NotThereError, match=r"no group 'billing'; .* with the same options"):
        observing.group_of(Source(snapshot()), "billing")
    with pytest.raises(NotThereError, match="no group 'other'"):
        answers.group_from(served(two_rounds()), "other")
    hidden = gap(scope=GapScope.GROUPS, what="groups of broker 2")
    silent = snapshot(gaps=(gap(what="offsets of a partition"), hidden))
    with pytest.raises(CollectError, match="'billing' was not seen: groups of broker 2"):
        observing.group_of(Source(silent), "billing")


def test_a_round_with_gaps_is_neither_current_nor_complete_and_hides_what_it_did_not_see() -> None:
    lags = gap(scope=GapScope.OFFSETS, what="offsets of a partition")
    partly = snapshot(
        partitions=partitions({"orders": 3}),
        offsets=offsets(3, last_stable_offset=[50, None, 90], high_watermark=[50, None, 90]),
        groups=(group(),),
        commits=commits((0, 0, 50), (0, 1, 100), (0, 2, 90)),
        gaps=(lags,),
    )
    service = served(view_of([partly]))
    every, one = answers.list_from(service, {}), answers.group_from(service, "billing")
    for document in (every, one):
        assert exit_code(document) is ExitCode.INCOMPLETE
        assert [each["what"] for each in document["gaps"]] == ["offsets of a partition"]
    listed, shown = lines(printed(render_list(every))), lines(printed(render_lag(one)))
    assert "billing Stable consumer 1 3 >=0 ?" in listed
    assert "lag >=0 offsets, not known of 1 partition" in shown
    for head in (listed[0], shown[0]):
        assert head.endswith("not complete")
    assert [line.split()[0] for line in shown if line.startswith("orders-")] == [
        "orders-1",
        "orders-0",
        "orders-2",
    ]
    with pytest.raises(NotThereError, match="no group 'other'"):
        answers.group_from(service, "other")
    hidden = gap(scope=GapScope.GROUPS, what="groups of broker 2")
    unlisted = served(view_of([snapshot(gaps=(lags, hidden))]))
    with pytest.raises(CollectError, match="'billing' was not seen: groups of broker 2"):
        answers.group_from(unlisted, "billing")


@pytest.mark.parametrize("name", ["two words", "a/b", "☃", "[bold]"])
def test_a_group_may_have_any_name(name: str) -> None:
    view = view_of([snapshot(groups=(group(name),), commits=commits((0, 0, 50)))])
    document = answers.group_from(served(view), name)
    assert f"group {name} " in printed(render_lag(document))


@pytest.mark.parametrize("cluster", [["--bootstrap-servers", "127.0.0.1:1"], ["--config", "x"]])
@pytest.mark.parametrize("server", [["--server", "http://127.0.0.1:1"], ["--context", "prod"]])
def test_a_server_and_a_cluster_exclude_each_other(cluster: list[str], server: list[str]) -> None:
    result = CliRunner().invoke(lag, ["g", *cluster, *server])
    assert result.exit_code == ExitCode.USAGE
    assert f"{server[0]} and {cluster[0]} exclude each other" in result.output


def test_a_cluster_is_read_whatever_contexts_and_the_environment_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tidemark").mkdir()
    (tmp_path / "tidemark" / "contexts.json").write_text("{", encoding="utf-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    missing = ["--config", str(tmp_path / "none.toml")]
    for value in ("", "no address"):
        monkeypatch.setenv("TIDEMARK_SERVER", value)
        result = CliRunner().invoke(lag, ["g", *missing])
        assert isinstance(result.exception, SettingsError)
        assert "none.toml" in str(result.exception)
