"""Change the running cluster: topics, settings, users, permissions.

All requests go over the PLAINTEXT listener, where every client is a super user. Each method
returns when the brokers have answered; a rejection is a SandboxError with Kafka's own message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined] # re-exports without saying so
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from rules.errors import SandboxError
from rules.facts.permissions import NEEDED
from rules.facts.permissions import ResourceType as KafkaResource
from service.sandbox.cluster.readiness import await_condition
from service.sandbox.cluster.users import ITERATIONS, OBSERVER, User

ANSWER_SECONDS = 45.0  # a busy machine
SETTLE_SECONDS = 45.0
CLUSTER_NAME = "kafka-cluster"  # the one name that Kafka gives the resource "cluster"
_RESOURCES: Final = {
    KafkaResource.CLUSTER: "cluster",
    KafkaResource.TOPIC: "topic",
    KafkaResource.GROUP: "group",
    KafkaResource.TRANSACTIONAL_ID: "transactional_id",
}
SCRAM_MECHANISMS = (ScramMechanism.SCRAM_SHA_512, ScramMechanism.SCRAM_SHA_256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """What a user may do: `operation` on `resource` (cluster, topic, group, transactional_id).

    The name `*` means every resource of that kind; with `is_prefix` the name is what names begin with.
    """

    user: str
    operation: str
    resource: str
    name: str = "*"
    is_prefix: bool = False


def observer_permissions() -> list[Permission]:
    """Return what Tidemark needs to see everything, and no more."""
    return [
        Permission(
            user=OBSERVER.name,
            operation=needed.operation.lower(),
            resource=_RESOURCES[needed.resource],
            name=needed.name or "*",
        )
        for needed in NEEDED
    ]


class SandboxAdmin:
    """Administration of one sandbox by its PLAINTEXT bootstrap servers."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._client = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 2})

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replication: int = 3,
        assignment: Sequence[Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic and wait until every partition has a leader.

        `assignment` lists the replicas of each partition, leader first, and then decides the
        number of partitions and replicas.
        """
        count = partitions if assignment is None else len(assignment)
        placement: dict[str, Any] = {"replication_factor": replication}
        if assignment is not None:
            placement = {"replica_assignment": [list(replicas) for replicas in assignment]}
        topic = NewTopic(name, num_partitions=count, config=dict(configs or {}), **placement)
        _ask(self._client.create_topics([topic], request_timeout=ANSWER_SECONDS))
        await_condition(
            lambda: self._led_partitions(name) == count,
            f"topic {name} has no leaders",
            seconds=SETTLE_SECONDS,
        )

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until the brokers no longer list it."""
        _ask(self._client.delete_topics([name], request_timeout=ANSWER_SECONDS))
        await_condition(
            lambda: name not in self._topics(),
            f"topic {name} is still listed",
            seconds=SETTLE_SECONDS,
        )

    def delete_group(self, name: str) -> None:
        """Delete a consumer group that has no members, with all that it committed."""

        def is_deleted() -> bool:
            try:
                _ask(self._client.delete_consumer_groups([name], request_timeout=ANSWER_SECONDS))
            except SandboxError as exc:
                cause = exc.__cause__
                if isinstance(cause, KafkaException) and cause.args[0].code() in _COORDINATOR_MOVES:
                    return False
                raise
            return True

        await_condition(is_deleted, f"group {name} has no coordinator", seconds=SETTLE_SECONDS)

    def set_topic_config(self, topic: str, configs: Mapping[str, str | None]) -> None:
        """Set a topic's settings at run time; None resets a setting to its default."""
        self._alter(ConfigResource.Type.TOPIC, topic, configs)

    def set_broker_config(self, broker_id: int, configs: Mapping[str, str | None]) -> None:
        """Set one broker's dynamic settings at run time; None resets a setting to its default."""
        if broker_id not in self._metadata().brokers:
            raise SandboxError(f"broker {broker_id} is not there to take a setting")
        self._alter(ConfigResource.Type.BROKER, str(broker_id), configs)

    def create_user(self, name: str, password: str) -> User:
        """Create a SCRAM user for both mechanisms, or set its password anew.

        Users are never deleted: a broker that starts replays all changes at once, and if it comes to the
        deletion of a user before any other change, it drops every credential (`ScramDelta.apply` of
        Kafka 4.1.1).
        """
        for mechanism in SCRAM_MECHANISMS:  # Kafka takes one change per user and request
            info = ScramCredentialInfo(mechanism, ITERATIONS)
            upsertion = UserScramCredentialUpsertion(name, info, password.encode())
            _ask(self._client.alter_user_scram_credentials([upsertion]))
        return User(name=name, password=password)

    def grant(self, permissions: Iterable[Permission]) -> None:
        """Add permissions; those that exist already stay as they are."""
        _ask(self._client.create_acls([AclBinding(*_parts(p)) for p in permissions]))

    def revoke(self, permissions: Iterable[Permission]) -> None:
        """Remove permissions; those that do not exist are no error."""
        _ask(self._client.delete_acls([AclBindingFilter(*_parts(p)) for p in permissions]))

    def _alter(self, kind: Any, name: str, configs: Mapping[str, str | None]) -> None:
        entries = [
            ConfigEntry(
                key,
                value,
                incremental_operation=(
                    AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
                ),
            )
            for key, value in configs.items()
        ]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        _ask(self._client.incremental_alter_configs([resource], request_timeout=ANSWER_SECONDS))

    def _topics(self) -> Mapping[str, Any]:
        topics: Mapping[str, Any] = self._metadata().topics
        return topics

    def _metadata(self) -> Any:
        try:
            return self._client.list_topics(timeout=ANSWER_SECONDS)
        except KafkaException as exc:
            raise SandboxError(f"the brokers do not answer: {exc.args[0].str()}") from exc

    def _led_partitions(self, topic: str) -> int:
        metadata = self._topics().get(topic)
        return 0 if metadata is None else sum(p.leader >= 0 for p in metadata.partitions.values())


_COORDINATOR_MOVES: Final = (  # as after a broker was frozen
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_COORDINATOR,
)


def _ask(answers: Mapping[Any, Future[Any]]) -> None:
    for subject, answer in answers.items():
        try:
            answer.result(timeout=ANSWER_SECONDS)
        except KafkaException as exc:
            raise SandboxError(
                f"Kafka rejected {getattr(subject, 'name', subject)}: {exc.args[0].str()}"
            ) from exc
        except TimeoutError as exc:
            raise SandboxError(f"the brokers did not answer within {ANSWER_SECONDS:.0f} s") from exc


def _parts(permission: Permission) -> tuple[Any, ...]:
    is_cluster = permission.resource == "cluster"
    kind = ResourceType.BROKER if is_cluster else ResourceType[permission.resource.upper()]
    return (
        kind,
        CLUSTER_NAME if is_cluster else permission.name,
        ResourcePatternType.PREFIXED if permission.is_prefix else ResourcePatternType.LITERAL,
        f"User:{permission.user}",
        "*",
        AclOperation[permission.operation.upper()],
        AclPermissionType.ALLOW,
    )
