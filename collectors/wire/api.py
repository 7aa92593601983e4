"""Which requests Tidemark sends, and in which versions it reads their answers.

The lower bound is the first version that carries what is needed, the upper bound the newest one
whose layout was checked. A broker outside the range is recognized by ApiVersions (KIP-35): an
unsupported version is otherwise answered only by closing the connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One request type: Kafka's key and name, and the versions that we read."""

    key: int
    name: str
    oldest: int
    newest: int
    since: str  # the Kafka release that first offers `oldest`


# Isolation levels: what an answer ends at, the high watermark or the LSO.
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1  # a fetch then lists aborted transactions, too
CONSUMER: Final = -1  # the replica id of whoever keeps no copy: sees up to the high watermark

FETCH: Final = Api(key=1, name="Fetch", oldest=12, newest=12, since="2.7")
LIST_OFFSETS: Final = Api(key=2, name="ListOffsets", oldest=6, newest=10, since="2.8")
METADATA: Final = Api(key=3, name="Metadata", oldest=11, newest=12, since="2.8")
OFFSET_FETCH: Final = Api(key=9, name="OffsetFetch", oldest=8, newest=9, since="3.0")
DESCRIBE_GROUPS: Final = Api(key=15, name="DescribeGroups", oldest=5, newest=5, since="2.4")
LIST_GROUPS: Final = Api(key=16, name="ListGroups", oldest=3, newest=5, since="2.4")
SASL_HANDSHAKE: Final = Api(key=17, name="SaslHandshake", oldest=1, newest=1, since="1.0")
API_VERSIONS: Final = Api(key=18, name="ApiVersions", oldest=0, newest=4, since="0.10")
OFFSET_FOR_LEADER_EPOCH: Final = Api(
    key=23, name="OffsetForLeaderEpoch", oldest=3, newest=4, since="2.3"
)
DESCRIBE_ACLS: Final = Api(key=29, name="DescribeAcls", oldest=1, newest=3, since="2.0")
DESCRIBE_CONFIGS: Final = Api(key=32, name="DescribeConfigs", oldest=4, newest=4, since="2.8")
SASL_AUTHENTICATE: Final = Api(key=36, name="SaslAuthenticate", oldest=1, newest=2, since="2.2")
DESCRIBE_QUORUM: Final = Api(key=55, name="DescribeQuorum", oldest=0, newest=2, since="3.3")
DESCRIBE_CLUSTER: Final = Api(key=60, name="DescribeCluster", oldest=0, newest=1, since="2.8")
DESCRIBE_PRODUCERS: Final = Api(key=61, name="DescribeProducers", oldest=0, newest=0, since="2.8")
DESCRIBE_TRANSACTIONS: Final = Api(
    key=65, name="DescribeTransactions", oldest=0, newest=0, since="3.0"
)
LIST_TRANSACTIONS: Final = Api(key=66, name="ListTransactions", oldest=0, newest=2, since="3.0")
CONSUMER_GROUP_DESCRIBE: Final = Api(
    key=69, name="ConsumerGroupDescribe", oldest=0, newest=1, since="3.7"
)
DESCRIBE_TOPIC_PARTITIONS: Final = Api(
    key=75, name="DescribeTopicPartitions", oldest=0, newest=0, since="3.8"
)
SHARE_GROUP_DESCRIBE: Final = Api(
    key=77, name="ShareGroupDescribe", oldest=1, newest=1, since="4.1"
)
STREAMS_GROUP_DESCRIBE: Final = Api(
    key=89, name="StreamsGroupDescribe", oldest=0, newest=0, since="4.1"
)
DESCRIBE_SHARE_GROUP_OFFSETS: Final = Api(
    key=90, name="DescribeShareGroupOffsets", oldest=0, newest=1, since="4.1"
)


@dataclass(frozen=True, slots=True)
class VersionRange:
    """The versions of one API that a broker offers, both ends inclusive."""

    oldest: int
    newest: int

    def usable(self, api: Api) -> int | None:
        """Return the newest version that both sides know, or None."""
        version = min(self.newest, api.newest)
        return version if version >= max(self.oldest, api.oldest) else None
