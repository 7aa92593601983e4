"""Names of settings: of Java's clients 3.3 to 4.4, Kafka Streams, Kafka Connect, and of librdkafka 2.16.

They say which library and which client a file is for, and what a misspelt name was probably meant to be. Source:
`configNames()` of the released classes, and `rd_kafka_conf_properties_show`.
"""

from __future__ import annotations

from typing import Final


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


JAVA_COMMON: Final = _names("""
    auto.include.jmx.reporter bootstrap.controllers bootstrap.resolve.timeout.ms bootstrap.servers client.dns.lookup
    client.id client.rack config.providers connections.max.idle.ms default.api.timeout.ms enable.metrics.push
    interceptor.classes metadata.cluster.check.enable metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms
    metadata.recovery.strategy metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
    receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retries retry.backoff.max.ms
    retry.backoff.ms sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class sasl.login.class
    sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism
    sasl.oauthbearer.allow.unverified.audience sasl.oauthbearer.allow.unverified.issuer
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
    sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
    sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
    sasl.oauthbearer.token.endpoint.url security.protocol security.providers send.buffer.bytes
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms ssl.cipher.suites ssl.enabled.protocols
    ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm
    ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type
    ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates
    ssl.truststore.location ssl.truststore.password ssl.truststore.type
""")  # of a producer and a consumer, or of the admin client
JAVA_PRODUCER: Final = _names("""
    acks batch.size buffer.memory buffer.memory.allocation.strategy compression.gzip.level compression.lz4.level
    compression.type compression.zstd.level delivery.timeout.ms enable.idempotence key.serializer linger.ms max.block.ms
    max.in.flight.requests.per.connection max.request.size metadata.max.idle.ms partitioner.adaptive.partitioning.enable
    partitioner.availability.timeout.ms partitioner.class partitioner.ignore.keys partitioner.rack.aware
    transaction.timeout.ms transaction.two.phase.commit.enable transactional.id value.serializer
""")  # of a producer alone
JAVA_CONSUMER: Final = _names("""
    allow.auto.create.topics auto.commit.interval.ms auto.offset.reset check.crcs enable.auto.commit
    exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id group.instance.id group.protocol
    group.remote.assignor heartbeat.interval.ms internal.leave.group.on.close
    internal.throw.on.fetch.stable.offset.unsupported isolation.level key.deserializer max.partition.fetch.bytes
    max.poll.interval.ms max.poll.records partition.assignment.strategy session.timeout.ms share.acknowledgement.mode
    share.acquire.mode value.deserializer
""")  # of a consumer alone
STREAMS: Final = _names("""
    acceptable.recovery.lag application.id application.server buffered.records.per.partition built.in.metrics.version
    cache.max.bytes.buffering commit.interval.ms default.client.supplier default.deserialization.exception.handler
    default.dsl.store default.key.serde default.list.key.serde.inner default.list.key.serde.type
    default.list.value.serde.inner default.list.value.serde.type default.production.exception.handler
    default.timestamp.extractor default.value.serde deserialization.exception.handler dsl.store.suppliers.class
    ensure.explicit.internal.resource.naming group.protocol log.summary.interval.ms max.task.idle.ms max.warmup.replicas
    num.standby.replicas num.stream.threads poll.ms probing.rebalance.interval.ms processing.exception.handler
    processing.guarantee processor.wrapper.class production.exception.handler rack.aware.assignment.non_overlap_cost
    rack.aware.assignment.strategy rack.aware.assignment.tags rack.aware.assignment.traffic_cost
    repartition.purge.interval.ms replication.factor rocksdb.config.setter state.cleanup.delay.ms state.dir
    statestore.cache.max.bytes task.assignor.class task.timeout.ms topology.optimization upgrade.from window.size.ms
    windowed.inner.class.serde windowstore.changelog.additional.retention.ms
""")  # of Kafka Streams alone
CONNECT_WORKER: Final = _names("""
    access.control.allow.methods access.control.allow.origin admin.listeners config.storage.replication.factor
    config.storage.topic connect.protocol connector.client.config.override.policy exactly.once.source.support
    header.converter header.converter.plugin.version inter.worker.key.generation.algorithm inter.worker.key.size
    inter.worker.key.ttl.ms inter.worker.signature.algorithm inter.worker.verification.algorithms key.converter
    key.converter.plugin.version listeners offset.flush.interval.ms offset.flush.timeout.ms offset.storage.partitions
    offset.storage.replication.factor offset.storage.topic plugin.discovery plugin.path rebalance.timeout.ms
    response.http.headers.config rest.advertised.host.name rest.advertised.listener rest.advertised.port
    rest.extension.classes scheduled.rebalance.max.delay.ms ssl.client.auth status.storage.partitions
    status.storage.replication.factor status.storage.topic task.shutdown.graceful.timeout.ms topic.creation.enable
    topic.tracking.allow.reset topic.tracking.enable value.converter value.converter.plugin.version
    worker.sync.timeout.ms worker.unsync.backoff.ms
""")  # of a worker of Kafka Connect alone
CONNECTOR: Final = _names("""
    config.action.reload connector.class connector.plugin.version errors.deadletterqueue.context.headers.enable
    errors.deadletterqueue.topic.name errors.deadletterqueue.topic.replication.factor errors.log.enable
    errors.log.include.messages errors.retry.delay.max.ms errors.retry.timeout errors.tolerance exactly.once.support
    name offsets.storage.topic predicates tasks.max tasks.max.enforce topic.creation.groups topics topics.regex
    transaction.boundary transaction.boundary.interval.ms transforms
""")  # of a connector
LIBRDKAFKA_PRODUCER: Final = _names("""
    batch.num.messages compression.codec compression.level delivery.report.only.error dr_cb dr_msg_cb
    enable.gapless.guarantee message.send.max.retries message.timeout.ms msg_order_cmp partitioner partitioner_cb
    produce.offset.report queue.buffering.backpressure.threshold queue.buffering.max.kbytes queue.buffering.max.messages
    queue.buffering.max.ms queuing.strategy request.required.acks sticky.partitioning.linger.ms
""")  # of a producer, and not of Java's
LIBRDKAFKA_CONSUMER: Final = _names("""
    auto.commit.enable consume.callback.max.messages consume_cb coordinator.query.interval.ms enable.auto.offset.store
    enable.partition.eof fetch.error.backoff.ms fetch.message.max.bytes fetch.queue.backoff.ms fetch.wait.max.ms
    group.protocol.type offset.store.method offset.store.path offset.store.sync.interval.ms offset_commit_cb
    queued.max.messages.kbytes queued.min.messages rebalance_cb
""")  # of a consumer, and not of Java's
LIBRDKAFKA_COMMON: Final = _names("""
    api.version.fallback.ms api.version.request api.version.request.timeout.ms background_event_cb broker.address.family
    broker.address.ttl broker.version.fallback builtin.features closesocket_cb connect_cb debug default_topic_conf
    enable.random.seed enable.sasl.oauthbearer.unsecure.jwt enable.ssl.certificate.verification enabled_events error_cb
    https.ca.location https.ca.pem interceptors internal.termination.signal log.connection.close log.queue
    log.thread.name log_cb log_level max.in.flight message.copy.max.bytes message.max.bytes metadata.broker.list
    oauthbearer_token_refresh_cb opaque open_cb plugin.library.paths receive.message.max.bytes
    reconnect.backoff.jitter.ms resolve_cb sasl.kerberos.keytab sasl.kerberos.principal sasl.mechanisms
    sasl.oauthbearer.assertion.jwt.template.file sasl.oauthbearer.assertion.private.key.pem sasl.oauthbearer.client.id
    sasl.oauthbearer.client.secret sasl.oauthbearer.config sasl.oauthbearer.extensions sasl.oauthbearer.grant.type
    sasl.oauthbearer.metadata.authentication.type sasl.oauthbearer.method sasl.password sasl.username
    socket.blocking.max.ms socket.keepalive.enable socket.max.fails socket.nagle.disable socket.receive.buffer.bytes
    socket.send.buffer.bytes socket.timeout.ms socket_cb ssl.ca.certificate.stores ssl.ca.location ssl.ca.pem
    ssl.certificate.location ssl.certificate.pem ssl.certificate.verify_cb ssl.crl.location ssl.curves.list
    ssl.engine.id ssl.engine.location ssl.key.location ssl.key.pem ssl.providers ssl.sigalgs.list ssl_ca ssl_certificate
    ssl_engine_callback_data ssl_key statistics.interval.ms stats_cb throttle_cb topic.blacklist
    topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt topic.metadata.refresh.fast.interval.ms
    topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse
""")  # of both, and not of Java's
LIBRDKAFKA_SHARED: Final = _names("""
    acks allow.auto.create.topics auto.commit.interval.ms auto.offset.reset batch.size bootstrap.servers check.crcs
    client.dns.lookup client.id client.rack compression.type connections.max.idle.ms delivery.timeout.ms
    enable.auto.commit enable.idempotence enable.metrics.push fetch.max.bytes fetch.min.bytes group.id group.instance.id
    group.protocol group.remote.assignor heartbeat.interval.ms isolation.level linger.ms
    max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms max.poll.records
    metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
    partition.assignment.strategy reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retries
    retry.backoff.max.ms retry.backoff.ms sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
    sasl.kerberos.service.name sasl.mechanism sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.scope sasl.oauthbearer.sub.claim.name
    sasl.oauthbearer.token.endpoint.url security.protocol session.timeout.ms share.acknowledgement.mode
    socket.connection.setup.timeout.ms ssl.cipher.suites ssl.endpoint.identification.algorithm ssl.key.password
    ssl.keystore.location ssl.keystore.password transaction.timeout.ms transactional.id
""")  # that Java's clients have too
JAVA: Final = JAVA_COMMON | JAVA_PRODUCER | JAVA_CONSUMER
LIBRDKAFKA_ONLY: Final = LIBRDKAFKA_COMMON | LIBRDKAFKA_PRODUCER | LIBRDKAFKA_CONSUMER
LIBRDKAFKA: Final = LIBRDKAFKA_ONLY | LIBRDKAFKA_SHARED
JAVA_ONLY: Final = (JAVA | STREAMS | CONNECT_WORKER) - LIBRDKAFKA
ALL: Final = JAVA | STREAMS | CONNECT_WORKER | CONNECTOR | LIBRDKAFKA
