"""Properties Apache Kafka 3.9 and 4.3 know and this broker has no use for, so that a server.properties still loads.

One line a property: name, type, importance, default (`-` none, `""` empty), and `internal` where Kafka hides it
or `retired` where only 3.9 knows it. A property moves from here to `broker` when it gains an effect.
"""

# ruff: noqa: E501  the table keeps one property a line

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.config.values import ConfigKey, ConfigType, Importance

if TYPE_CHECKING:
    from collections.abc import Iterator

_TABLE = """
add.partitions.to.txn.retry.backoff.max.ms int high 100
add.partitions.to.txn.retry.backoff.ms int high 20
alter.config.policy.class.name class low -
alter.log.dirs.replication.quota.window.num int low 11
alter.log.dirs.replication.quota.window.size.seconds int low 1
authorizer.class.name string low ""
auto.include.jmx.reporter boolean low true retired
background.threads int high 10
broker.heartbeat.interval.ms int medium 2000
broker.id.generation.enable boolean medium true retired
broker.session.timeout.ms int medium 9000
client.quota.callback.class class low -
config.providers list low ""
connection.failed.authentication.delay.ms int low 100
connections.max.reauth.ms long medium 0
control.plane.listener.name string high - retired
controller.performance.always.log.threshold.ms long medium 2000 internal
controller.performance.sample.period.ms long medium 60000 internal
controller.quorum.append.linger.ms int medium 25
controller.quorum.auto.join.enable boolean low false
controller.quorum.bootstrap.servers list high ""
controller.quorum.election.backoff.max.ms int high 1000
controller.quorum.election.timeout.ms int high 1000
controller.quorum.fetch.max.bytes int low 1048576
controller.quorum.fetch.snapshot.max.bytes int low 1048576
controller.quorum.fetch.timeout.ms int high 2000
controller.quorum.request.timeout.ms int medium 2000
controller.quorum.retry.backoff.ms int low 20
controller.quorum.voters list high ""
controller.quota.window.num int low 11
controller.quota.window.size.seconds int low 1
controller.socket.timeout.ms int medium 30000
cordoned.log.dirs list medium ""
create.topic.policy.class.name class low -
delegation.token.expiry.check.interval.ms long low 3600000
delegation.token.expiry.time.ms long medium 86400000
delegation.token.master.key password medium - retired
delegation.token.max.lifetime.ms long medium 604800000
delegation.token.secret.key password medium -
delete.records.purgatory.purge.interval.requests int medium 1
early.start.listeners list high -
eligible.leader.replicas.enable boolean high false retired
fetch.purgatory.purge.interval.requests int medium 1000
follower.fetch.last.tiered.offset.enable boolean medium false
group.coordinator.append.linger.ms int medium -1
group.coordinator.background.threads int high 2
group.coordinator.cached.buffer.max.bytes int medium 1048588
group.coordinator.new.enable boolean medium false internal retired
group.coordinator.threads int high 4
group.share.assignment.interval.ms int medium 1000
group.share.assignors list medium simple
group.share.delivery.count.limit int medium 5
group.share.enable boolean medium false internal retired
group.share.heartbeat.interval.ms int medium 5000
group.share.initialize.retry.interval.ms int low 30000 internal
group.share.max.assignment.interval.ms int medium 15000
group.share.max.delivery.count.limit int medium 10
group.share.max.groups short medium 10 retired
group.share.max.heartbeat.interval.ms int medium 15000
group.share.max.partition.max.record.locks int medium 4000
group.share.max.record.lock.duration.ms int medium 60000
group.share.max.session.timeout.ms int medium 60000
group.share.max.share.sessions int medium 2000
group.share.max.size int medium 200
group.share.min.assignment.interval.ms int medium 0
group.share.min.delivery.count.limit int medium 2
group.share.min.heartbeat.interval.ms int medium 5000
group.share.min.partition.max.record.locks int medium 100
group.share.min.record.lock.duration.ms int medium 15000
group.share.min.session.timeout.ms int medium 45000
group.share.partition.max.record.locks int medium 2000
group.share.persister.class.name string medium org.apache.kafka.server.share.persister.DefaultStatePersister internal
group.share.record.lock.duration.ms int medium 30000
group.share.session.timeout.ms int medium 45000
group.streams.assignment.interval.ms int medium 1000
group.streams.heartbeat.interval.ms int medium 5000
group.streams.initial.rebalance.delay.ms int medium 3000
group.streams.max.assignment.interval.ms int medium 15000
group.streams.max.heartbeat.interval.ms int medium 15000
group.streams.max.session.timeout.ms int medium 60000
group.streams.max.size int medium 2147483647
group.streams.max.standby.replicas int medium 2
group.streams.min.assignment.interval.ms int medium 0
group.streams.min.heartbeat.interval.ms int medium 5000
group.streams.min.session.timeout.ms int medium 45000
group.streams.num.standby.replicas int medium 0
group.streams.session.timeout.ms int medium 45000
initial.broker.registration.timeout.ms int medium 60000
inter.broker.protocol.version string medium 3.9-IV0 retired
internal.metadata.delete.delay.millis long low 60000 internal
internal.metadata.log.segment.bytes int low - internal
internal.metadata.max.batch.size.in.bytes int low 8388608 internal
kafka.metrics.polling.interval.secs int low 10
kafka.metrics.reporters list low ""
log.dir.failure.timeout.ms long low 30000
log.local.retention.bytes long medium -2
log.local.retention.ms long medium -2
log.message.format.version string medium 3.0-IV1 retired
max.connection.creation.rate int medium 2147483647
metadata.log.dir string high -
metadata.log.max.record.bytes.between.snapshots long high 20971520
metadata.log.max.snapshot.interval.ms long high 3600000
metadata.log.segment.bytes int high 1073741824
metadata.log.segment.min.bytes int high 8388608 internal retired
metadata.log.segment.ms long high 604800000
metadata.max.idle.interval.ms int low 500
metadata.max.retention.bytes long high 104857600
metadata.max.retention.ms long high 604800000
metric.reporters list low org.apache.kafka.common.metrics.JmxReporter
metrics.num.samples int low 2
metrics.recording.level string low INFO
metrics.sample.window.ms long low 30000
num.io.threads int high 8
num.network.threads int high 3
num.recovery.threads.per.data.dir int high 2
num.replica.alter.log.dirs.threads int high -
num.replica.fetchers int high 1
offsets.commit.required.acks short high -1 retired
password.encoder.cipher.algorithm string low AES/CBC/PKCS5Padding retired
password.encoder.iterations int low 4096 retired
password.encoder.key.length int low 128 retired
password.encoder.keyfactory.algorithm string low - retired
password.encoder.old.secret password medium - retired
password.encoder.secret password medium - retired
principal.builder.class class medium org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
process.roles list high -
producer.purgatory.purge.interval.requests int medium 1000
queued.max.request.bytes long medium -1
queued.max.requests int high 500
quota.window.num int low 11
quota.window.size.seconds int low 1
remote.fetch.max.wait.ms int medium 500
remote.list.offsets.request.timeout.ms long medium 30000
remote.log.index.file.cache.total.size.bytes long low 1073741824
remote.log.index.file.cache.ttl.ms long low 900000 internal
remote.log.manager.copier.thread.pool.size int medium 10
remote.log.manager.copy.max.bytes.per.second long medium 9223372036854775807
remote.log.manager.copy.quota.window.num int medium 11
remote.log.manager.copy.quota.window.size.seconds int medium 1
remote.log.manager.expiration.thread.pool.size int medium 10
remote.log.manager.fetch.max.bytes.per.second long medium 9223372036854775807
remote.log.manager.fetch.quota.window.num int medium 11
remote.log.manager.fetch.quota.window.size.seconds int medium 1
remote.log.manager.follower.thread.pool.size int medium 2
remote.log.manager.task.interval.ms long low 30000
remote.log.manager.task.retry.backoff.max.ms long low 30000 internal
remote.log.manager.task.retry.backoff.ms long low 500 internal
remote.log.manager.task.retry.jitter double low 0.2 internal
remote.log.manager.thread.pool.size int medium 2
remote.log.metadata.custom.metadata.max.bytes int low 128
remote.log.metadata.manager.class.name string medium org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager
remote.log.metadata.manager.class.path string medium -
remote.log.metadata.manager.impl.prefix string medium rlmm.config.
remote.log.metadata.manager.listener.name string medium -
remote.log.reader.max.pending.tasks int medium 100
remote.log.reader.threads int medium 10
remote.log.storage.manager.class.name string medium -
remote.log.storage.manager.class.path string medium -
remote.log.storage.manager.impl.prefix string medium rsm.config.
remote.log.storage.system.enable boolean medium false
replica.socket.receive.buffer.bytes int high 65536
request.timeout.ms int high 30000
reserved.broker.max.id int medium 1000 retired
sasl.client.callback.handler.class class medium -
sasl.enabled.mechanisms list medium GSSAPI
sasl.jaas.config password medium -
sasl.kerberos.kinit.cmd string medium /usr/bin/kinit
sasl.kerberos.min.time.before.relogin long medium 60000
sasl.kerberos.principal.to.local.rules list medium DEFAULT
sasl.kerberos.service.name string medium -
sasl.kerberos.ticket.renew.jitter double medium 0.05
sasl.kerberos.ticket.renew.window.factor double medium 0.8
sasl.login.callback.handler.class class medium -
sasl.login.class class medium -
sasl.login.connect.timeout.ms int low -
sasl.login.read.timeout.ms int low -
sasl.login.refresh.buffer.seconds short medium 300
sasl.login.refresh.min.period.seconds short medium 60
sasl.login.refresh.window.factor double medium 0.8
sasl.login.refresh.window.jitter double medium 0.05
sasl.login.retry.backoff.max.ms long low 10000
sasl.login.retry.backoff.ms long low 100
sasl.mechanism.controller.protocol string high GSSAPI
sasl.mechanism.inter.broker.protocol string medium GSSAPI
sasl.oauthbearer.assertion.algorithm string medium RS256
sasl.oauthbearer.assertion.claim.aud string medium -
sasl.oauthbearer.assertion.claim.exp.seconds int low 300
sasl.oauthbearer.assertion.claim.iss string medium -
sasl.oauthbearer.assertion.claim.jti.include boolean medium false
sasl.oauthbearer.assertion.claim.nbf.seconds int low 60
sasl.oauthbearer.assertion.claim.sub string medium -
sasl.oauthbearer.assertion.file string medium -
sasl.oauthbearer.assertion.private.key.file string medium -
sasl.oauthbearer.assertion.private.key.passphrase password medium -
sasl.oauthbearer.assertion.template.file string medium -
sasl.oauthbearer.client.credentials.client.id string medium -
sasl.oauthbearer.client.credentials.client.secret password medium -
sasl.oauthbearer.clock.skew.seconds int low 30
sasl.oauthbearer.expected.audience list high ""
sasl.oauthbearer.expected.issuer string high -
sasl.oauthbearer.jwks.endpoint.refresh.ms long low 3600000
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms long low 10000
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms long low 100
sasl.oauthbearer.jwks.endpoint.url string medium -
sasl.oauthbearer.jwt.retriever.class class medium org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
sasl.oauthbearer.jwt.validator.class class medium org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
sasl.oauthbearer.scope string medium -
sasl.oauthbearer.scope.claim.name string low scope
sasl.oauthbearer.sub.claim.name string low sub
sasl.oauthbearer.token.endpoint.url string medium -
sasl.server.callback.handler.class class medium -
sasl.server.max.receive.size int medium 524288
security.providers string low -
server.max.startup.time.ms long medium 9223372036854775807 internal
share.coordinator.append.linger.ms int medium -1
share.coordinator.cached.buffer.max.bytes int medium 1048588
share.coordinator.cold.partition.snapshot.interval.ms int low 300000 internal
share.coordinator.load.buffer.size int high 5242880
share.coordinator.snapshot.update.records.per.snapshot int medium 500
share.coordinator.state.topic.compression.codec int high 0
share.coordinator.state.topic.min.isr short high 2
share.coordinator.state.topic.num.partitions int high 50
share.coordinator.state.topic.prune.interval.ms int low 300000 internal
share.coordinator.state.topic.replication.factor short high 3
share.coordinator.state.topic.segment.bytes int high 104857600
share.coordinator.threads int medium 1
share.coordinator.write.timeout.ms int high 5000
share.fetch.purgatory.purge.interval.requests int medium 1000
socket.connection.setup.timeout.max.ms long medium 30000
socket.connection.setup.timeout.ms long medium 10000
ssl.allow.dn.changes boolean low false
ssl.allow.san.changes boolean low false
ssl.cipher.suites list medium ""
ssl.client.auth string medium none
ssl.enabled.protocols list medium TLSv1.2,TLSv1.3
ssl.endpoint.identification.algorithm string low https
ssl.engine.factory.class class low -
ssl.key.password password medium -
ssl.keymanager.algorithm string medium SunX509
ssl.keystore.certificate.chain password medium -
ssl.keystore.key password medium -
ssl.keystore.location string medium -
ssl.keystore.password password medium -
ssl.keystore.type string medium JKS
ssl.principal.mapping.rules string low DEFAULT
ssl.protocol string medium TLSv1.3
ssl.provider string medium -
ssl.secure.random.implementation string low -
ssl.trustmanager.algorithm string medium PKIX
ssl.truststore.certificates password medium -
ssl.truststore.location string medium -
ssl.truststore.password password medium -
ssl.truststore.type string medium JKS
telemetry.max.bytes int low 1048576
transaction.abort.timed.out.transaction.cleanup.interval.ms int low 10000
transaction.max.timeout.ms int high 900000
transaction.partition.verification.enable boolean low true
transaction.remove.expired.transaction.cleanup.interval.ms int low 3600000
transaction.state.log.load.buffer.size int high 5242880
transaction.state.log.min.isr int high 2
transaction.state.log.num.partitions int high 50
transaction.state.log.replication.factor short high 3
transaction.state.log.segment.bytes int high 104857600
transaction.two.phase.commit.enable boolean low false
transactional.id.expiration.ms int high 604800000
unclean.leader.election.interval.ms long medium 300000 internal
unstable.api.versions.enable boolean high false internal
unstable.feature.versions.enable boolean high false internal
zookeeper.clientCnxnSocket string medium - retired
zookeeper.max.in.flight.requests int high 10 retired
zookeeper.metadata.migration.enable boolean high false retired
zookeeper.metadata.migration.min.batch.size int medium 200 internal retired
zookeeper.ssl.cipher.suites list low - retired
zookeeper.ssl.client.enable boolean medium false retired
zookeeper.ssl.crl.enable boolean low false retired
zookeeper.ssl.enabled.protocols list low - retired
zookeeper.ssl.endpoint.identification.algorithm string low HTTPS retired
zookeeper.ssl.keystore.location string medium - retired
zookeeper.ssl.keystore.password password medium - retired
zookeeper.ssl.keystore.type string medium - retired
zookeeper.ssl.ocsp.enable boolean low false retired
zookeeper.ssl.protocol string low TLSv1.2 retired
zookeeper.ssl.truststore.location string medium - retired
zookeeper.ssl.truststore.password password medium - retired
zookeeper.ssl.truststore.type string medium - retired
"""


def _read(table: str) -> Iterator[ConfigKey]:
    for line in table.strip().splitlines():
        name, kind, importance, default, *flags = line.split(" ")
        yield ConfigKey(
            name,
            ConfigType[kind.upper()],
            None if default == "-" else "" if default == '""' else default,
            importance=Importance(importance),
            doc="Known to Apache Kafka; has no effect in this broker",
            effect=False,
            internal="internal" in flags,
            retired="retired" in flags,
        )


INERT_KEYS: tuple[ConfigKey, ...] = tuple(_read(_TABLE))
