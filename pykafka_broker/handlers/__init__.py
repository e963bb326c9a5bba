"""One module an API. The table below, with that of `cluster_routes` in a cluster, is the single list of what is served;
ApiVersions is derived from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.handlers import (
    alter_configs,
    alter_partition_reassignments,
    api_versions,
    consumer_group_describe,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_topic_partitions,
    elect_leaders,
    fetch,
    find_coordinator,
    group_requests,
    incremental_alter_configs,
    init_producer_id,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
)
from pykafka_broker.handlers.services import Route
from pykafka_broker.protocol.api import APIS, ApiKey

if TYPE_CHECKING:
    from pykafka_broker.handlers.services import Handler


def route(
    key: ApiKey,
    handler: Handler,
    oldest: int,
    newest: int,
    advertised_from: int | None = None,
    *,
    in_line: bool = False,
) -> Route:
    api = APIS[key]
    assert oldest in api.versions
    assert newest in api.versions
    shown = oldest if advertised_from is None else advertised_from
    return Route(api, handler, oldest, newest, shown, in_line)


ROUTES: tuple[Route, ...] = (
    route(ApiKey.PRODUCE, produce.handle, 0, 13, in_line=True),
    route(ApiKey.FETCH, fetch.handle, 0, 18),
    route(ApiKey.LIST_OFFSETS, list_offsets.handle, 0, 11),
    route(ApiKey.METADATA, metadata.handle, 0, 13),
    route(ApiKey.OFFSET_COMMIT, offset_commit.handle, 0, 10),
    route(ApiKey.OFFSET_FETCH, offset_fetch.handle, 0, 10),
    route(ApiKey.FIND_COORDINATOR, find_coordinator.handle, 0, 6),
    route(ApiKey.JOIN_GROUP, group_requests.handle, 0, 9),
    route(ApiKey.HEARTBEAT, group_requests.handle, 0, 4),
    route(ApiKey.LEAVE_GROUP, group_requests.handle, 0, 5),
    route(ApiKey.SYNC_GROUP, group_requests.handle, 0, 5),
    route(ApiKey.DESCRIBE_GROUPS, describe_groups.handle, 0, 6),
    route(ApiKey.LIST_GROUPS, list_groups.handle, 0, 5),
    route(ApiKey.API_VERSIONS, api_versions.handle, 0, 5),
    route(ApiKey.CREATE_TOPICS, create_topics.handle, 0, 7),
    route(ApiKey.DELETE_TOPICS, delete_topics.handle, 0, 6),
    route(ApiKey.DELETE_RECORDS, delete_records.handle, 0, 2),
    route(ApiKey.INIT_PRODUCER_ID, init_producer_id.handle, 0, 6),
    route(ApiKey.OFFSET_FOR_LEADER_EPOCH, offset_for_leader_epoch.handle, 0, 4),
    route(ApiKey.DESCRIBE_CONFIGS, describe_configs.handle, 0, 4),
    route(ApiKey.ALTER_CONFIGS, alter_configs.handle, 0, 2),
    route(ApiKey.DESCRIBE_LOG_DIRS, describe_log_dirs.handle, 0, 5),
    route(ApiKey.CREATE_PARTITIONS, create_partitions.handle, 0, 3),
    route(ApiKey.DELETE_GROUPS, delete_groups.handle, 0, 3),
    route(ApiKey.ELECT_LEADERS, elect_leaders.handle, 0, 2),
    route(ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental_alter_configs.handle, 0, 1),
    route(ApiKey.ALTER_PARTITION_REASSIGNMENTS, alter_partition_reassignments.handle, 0, 1),
    route(ApiKey.LIST_PARTITION_REASSIGNMENTS, list_partition_reassignments.handle, 0, 0),
    route(ApiKey.OFFSET_DELETE, group_requests.handle, 0, 0),
    route(ApiKey.DESCRIBE_CLUSTER, describe_cluster.handle, 0, 2),
    route(ApiKey.CONSUMER_GROUP_HEARTBEAT, group_requests.handle, 0, 1),
    route(ApiKey.CONSUMER_GROUP_DESCRIBE, consumer_group_describe.handle, 0, 1),
    route(ApiKey.DESCRIBE_TOPIC_PARTITIONS, describe_topic_partitions.handle, 0, 0),
)
