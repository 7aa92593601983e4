"""The options of Kafka's own tools that runbooks use, and which of them only read.

By the sources of Kafka 4.1. What is not listed here is never run: joptsimple takes any unambiguous beginning of an option for
the option (`--del` is `--delete`), so that a list of what is forbidden would not do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

SERVERS: Final = "--bootstrap-server"
CONTROLLERS: Final = "--bootstrap-controller"  # in place of SERVERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One use of a tool: its verb, and the options that may go with it."""

    verb: str  # a subcommand, or an option such as --describe; empty: the tool has only one use
    flags: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()  # options that take a value
    is_reading: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTool:
    """One of Kafka's scripts."""

    forms: tuple[Form, ...]
    queries_brokers: bool = True  # by --bootstrap-server
    config_option: str = "--command-config"  # takes a file of a client's properties


def _reads(verb: str, valued: str = "", flags: str = "") -> Form:
    return Form(verb=verb, valued=frozenset(valued.split()), flags=frozenset(flags.split()))


def _changes(verb: str, valued: str = "", flags: str = "") -> Form:
    valued_, flags_ = frozenset(valued.split()), frozenset(flags.split())
    return Form(verb=verb, valued=valued_, flags=flags_, is_reading=False)


def _tool(*forms: Form) -> KafkaTool:
    return KafkaTool(forms=forms)


KAFKA_TOOLS: Final[Mapping[str, KafkaTool]] = MappingProxyType(
    {
        "kafka-broker-api-versions.sh": _tool(_reads("")),
        "kafka-configs.sh": _tool(
            _reads("--describe", "--entity-type --entity-name --topic --broker", "--all"),
            _changes(
                "--alter",
                "--entity-type --entity-name --topic --broker --add-config --delete-config",
            ),
        ),
        "kafka-consumer-groups.sh": _tool(
            _reads("--describe", "--group", "--members --verbose --offsets --state"),
            _changes(
                "--reset-offsets",
                "--group --topic --to-offset --to-datetime",
                "--to-latest --to-earliest --execute --dry-run",
            ),
            _changes("--delete", "--group"),
        ),
        "kafka-dump-log.sh": KafkaTool(
            forms=(_reads("--files", flags="--print-data-log --deep-iteration"),),
            queries_brokers=False,
        ),
        "kafka-get-offsets.sh": _tool(_reads("", "--topic --partitions --time --topic-partitions")),
        "kafka-leader-election.sh": KafkaTool(
            forms=(_changes("--election-type", "--topic --partition"),),
            config_option="--admin.config",
        ),
        "kafka-log-dirs.sh": _tool(_reads("--describe", "--topic-list --broker-list")),
        "kafka-metadata-quorum.sh": _tool(
            _reads(
                "describe", CONTROLLERS, flags="--status --replication --human-readable"
            )
        ),
        "kafka-reassign-partitions.sh": _tool(_reads("--list")),
        "kafka-topics.sh": _tool(
            _reads(
                "--describe",
                "--topic",
                "--under-replicated-partitions --unavailable-partitions --under-min-isr-partitions",
            ),
            _reads("--list", "--topic"),
        ),
        "kafka-transactions.sh": _tool(
            _reads("list"),
            _reads("describe", "--transactional-id"),
            _reads("describe-producers", "--topic --partition --broker-id"),
            _reads(
                "find-hanging", "--topic --partition --broker-id --max-transaction-timeout"
            ),
            _changes("abort", "--topic --partition --start-offset"),
        ),
    }
)  # fmt: skip
VALUED_VERBS: Final = frozenset(
    {"--files", "--election-type"}
)  # verbs that are options with a value


def script_name(word: str) -> str | None:
    """Return the name of the tool's script, with `.sh`; None for what is no tool of Kafka's."""
    name = word if word.endswith(".sh") else f"{word}.sh"
    return name if name in KAFKA_TOOLS else None


def form_of(name: str, words: Sequence[str]) -> Form | None:
    """Return the use of a tool that its arguments make; None if an option does not belong to it."""
    return next((form for form in KAFKA_TOOLS[name].forms if _fits(form, words)), None)


def _fits(form: Form, words: Sequence[str]) -> bool:
    left, has_verb = list(words), not form.verb
    valued = form.valued | ({form.verb} & VALUED_VERBS)
    while left:
        word = left.pop(0)
        name, equals, _value = word.partition("=")
        has_verb |= name == form.verb
        if name in valued:
            if not equals and (not left or left.pop(0).startswith("-")):
                return False
        elif word not in form.flags and word != form.verb:
            return False
    return has_verb
