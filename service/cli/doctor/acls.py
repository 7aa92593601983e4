"""ACLs as commands of Kafka's own tool, kafka-acls.sh, quoted for a POSIX shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from collectors.name_scope import NameScope, PatternType
from collectors.permission_checks import Outcome, PermissionCheck
from rules.facts.permissions import NeededPermission, Operation, ResourceType
from service.views.doctor import Acl

if TYPE_CHECKING:
    from service.settings import KafkaSettings

TOOL: Final = "kafka-acls.sh"
PLACEHOLDER: Final = "broker-1:9092"
_OPERATIONS: Final = {
    Operation.DESCRIBE: "Describe",
    Operation.DESCRIBE_CONFIGS: "DescribeConfigs",
    Operation.READ: "Read",
}
_OPTIONS: Final = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
}


def principal_of(settings: KafkaSettings) -> str:
    """Return the principal that we authenticate as, as far as settings tell.

    Brokers make the one of a client certificate by rules of their own: PRINCIPAL stands for it.
    """
    protocol = str(settings.security_protocol)
    if protocol.startswith("SASL"):
        return f"User:{settings.sasl_username}"
    return "User:PRINCIPAL" if protocol == "SSL" else "User:ANONYMOUS"


def with_type(principal: str) -> str:
    """Return a principal with its type, which is User unless it says another one."""
    return principal if ":" in principal else f"User:{principal}"


def acl_of(needed: NeededPermission, scope: NameScope, principal: str, servers: str) -> Acl:
    """Return the ACL that grants a permission, and no more."""
    return Acl(
        operation=_OPERATIONS[needed.operation],
        resource=str(needed.resource),
        pattern_type=str(scope.pattern_type),
        name="kafka-cluster" if needed.resource is ResourceType.CLUSTER else scope.name,
        command=shlex.join(
            [
                *(TOOL, "--bootstrap-server", servers, "--add", "--allow-principal", principal),
                *("--operation", _OPERATIONS[needed.operation], *_resource(needed, scope)),
            ]
        ),
    )


def list_command(needed: NeededPermission, name: str, servers: str) -> str:
    """Return the command that lists the ACLs which match a name, those that deny it among them."""
    option = _OPTIONS[needed.resource]
    words = [TOOL, "--bootstrap-server", servers, "--list", option, name]
    return shlex.join([*words, "--resource-pattern-type", "match"])


def script(
    granted: Sequence[tuple[NeededPermission, NameScope]], principal: str, servers: str
) -> Iterator[str]:
    """Yield the lines that grant permissions, each behind a comment that says what it is for."""
    for needed, scope in granted:
        yield f"# {needed.title}; without it: {needed.without.replace('`', '')}"
        yield acl_of(needed, scope, principal, servers).command


def missing(checks: Sequence[PermissionCheck]) -> list[tuple[NeededPermission, NameScope]]:
    """Return what a grant gives of what is denied: an ACL that denies is stronger than any grant."""
    return [
        (check.needed, check.scope)
        for check in checks
        if check.outcome is Outcome.DENIED and not check.is_denial
    ]


def _resource(needed: NeededPermission, scope: NameScope) -> list[str]:
    if needed.resource is ResourceType.CLUSTER:
        return ["--cluster"]
    words = [_OPTIONS[needed.resource], scope.name]
    is_prefix = scope.pattern_type is PatternType.PREFIXED
    return [*words, "--resource-pattern-type", "prefixed"] if is_prefix else words
