"""Which errors are one problem, and what is kept of its occurrences."""

from __future__ import annotations

from rules.exceptions.problems import EXAMPLES_KEPT, PLACES_KEPT
from rules.facts.identity import TopicPartition
from tests.application_lines import fatal, problem, retried


def test_the_same_error_of_the_same_client_is_one_problem_and_keeps_both_clocks() -> None:
    made = problem(
        "\n".join(
            [fatal(at="2025-06-02 12:00:05,000"), fatal(), fatal(at="2025-06-02 12:00:01,000")]
        )
    )
    assert made.count == 3
    assert made.first_at is not None
    assert made.last_at is not None
    assert (made.first_at.second, made.last_at.second) == (0, 5)
    assert [example.at.second for example in made.examples if example.at] == [5, 0, 1]


def test_another_transactional_id_or_application_is_another_problem_and_of_many_it_is_none() -> (
    None
):
    made = [problem(fatal("pay-1")), problem(fatal("pay-2")), problem(fatal("pay-1"), "billing")]
    assert len({each.id for each in made}) == 3
    many = [problem(fatal(name), is_of_many=True) for name in ("pay-1", "pay-2")]
    assert len({each.id for each in many}) == 1
    assert many[0].id not in {each.id for each in made}
    assert many[0].names.transactional_id is None


def test_what_is_kept_is_bounded_and_has_the_first_and_the_latest() -> None:
    lines = [retried(partition=number) for number in range(50)]
    made = problem("\n".join(lines))
    assert made.count == 50
    assert len(made.examples) == EXAMPLES_KEPT
    assert "orders-0," in made.examples[0].text
    assert "orders-49," in made.examples[-1].text
    assert len(made.places) == PLACES_KEPT
    assert made.places[-1] == TopicPartition("orders", 49)
