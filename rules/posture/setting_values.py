"""Values of settings that several checks compare with: those that exactly-once needs, and those where nothing is set.

Source: `TopicConfig`, `TransactionStateManagerConfig`, `ProducerConfig` and `StreamsConfig` of Kafka 2.8 to 4.4; librdkafka 2.16.
"""

from __future__ import annotations

from typing import Final

# What exactly-once needs.
REPLICAS: Final = 3
MIN_ISR: Final = 2
MOST_IN_FLIGHT: Final = 5  # batches of a producer that brokers remember

# Of `cleanup.policy`.
COMPACT: Final = "compact"
DELETE: Final = "delete"

# Defaults of topics and brokers.
MAX_MESSAGE_BYTES: Final = 1_048_588
LEAST_MESSAGE_BYTES: Final = 1_000_000  # the default before 2.5 was a little more
TRANSACTION_MAX_TIMEOUT_MS: Final = 900_000

# Defaults of both kinds of clients.
TRANSACTION_TIMEOUT_MS: Final = 60_000

# Defaults of Java's producers.
BATCH_SIZE: Final = 16_384  # bytes
DELIVERY_TIMEOUT_MS: Final = 120_000
REQUEST_TIMEOUT_MS: Final = 30_000
LINGER_MS: Final = 5  # from 4.0 on; 0 before

# Default of librdkafka's producers.
MESSAGE_TIMEOUT_MS: Final = 300_000

# Defaults of Kafka Streams with exactly-once, the first one of its producers.
STREAMS_TRANSACTION_TIMEOUT_MS: Final = 10_000
STREAMS_COMMIT_INTERVAL_MS: Final = 100
