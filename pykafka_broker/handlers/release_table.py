"""What releases of Apache Kafka advertised; made by `python -m compat_tests.releases`, not by hand."""

from __future__ import annotations

# ruff: noqa: E501, SIM905 -- a row is the whole history of an API

RELEASES = "0.9 0.10.0 0.10.1 0.10.2 0.11 1.0 1.1 2.0 2.1 2.2 2.3 2.4 2.5 2.6 2.7 2.8 3.0 3.1 3.2 3.3 3.4 3.5 3.6 3.7 3.8 3.9 4.0 4.1 4.2 4.3 4.4".split()

APIS = {
    0: "0.9 0-1, 0.10.0 0-2, 0.11 0-3, 1.0 0-5, 2.0 0-6, 2.1 0-7, 2.4 0-8, 2.8 0-9, 3.7 0-10, 3.8 0-11, 4.0 3-12, 4.1 3-13",  # PRODUCE
    1: "0.9 0-1, 0.10.0 0-2, 0.10.1 0-3, 0.11 0-5, 1.0 0-6, 1.1 0-7, 2.0 0-8, 2.1 0-10, 2.3 0-11, 2.7 0-12, 3.1 0-13, 3.5 0-15, 3.7 0-16, 3.9 0-17, 4.0 4-17, 4.1 4-18",  # FETCH
    2: "0.9 0-0, 0.10.1 0-1, 0.11 0-2, 2.0 0-3, 2.1 0-4, 2.2 0-5, 2.8 0-6, 3.0 0-7, 3.5 0-8, 3.9 0-9, 4.0 1-10, 4.2 1-11",  # LIST_OFFSETS
    3: "0.9 0-0, 0.10.0 0-1, 0.10.1 0-2, 0.11 0-4, 1.0 0-5, 2.0 0-6, 2.1 0-7, 2.3 0-8, 2.4 0-9, 2.8 0-11, 3.1 0-12, 4.0 0-13",  # METADATA
    4: "0.9 0-0, 1.0 0-1, 2.2 0-2, 2.4 0-4, 2.8 0-5, 3.2 0-6, 3.4 0-7, 4.0 -",  # LEADER_AND_ISR
    5: "0.9 0-0, 2.2 0-1, 2.4 0-2, 2.6 0-3, 3.4 0-4, 4.0 -",  # STOP_REPLICA
    6: "0.9 0-1, 0.10.0 0-2, 0.10.2 0-3, 1.0 0-4, 2.2 0-5, 2.4 0-6, 2.8 0-7, 3.4 0-8, 4.0 -",  # UPDATE_METADATA
    7: "0.9 1-1, 1.0 0-1, 2.2 0-2, 2.4 0-3, 4.0 -",  # CONTROLLED_SHUTDOWN
    8: "0.9 0-2, 0.11 0-3, 2.0 0-4, 2.1 0-6, 2.3 0-7, 2.4 0-8, 3.7 0-9, 4.0 2-9, 4.2 2-10",  # OFFSET_COMMIT
    9: "0.9 0-1, 0.10.2 0-2, 0.11 0-3, 2.0 0-4, 2.1 0-5, 2.4 0-6, 2.5 0-7, 3.0 0-8, 3.7 0-9, 4.0 1-9, 4.2 1-10",  # OFFSET_FETCH
    10: "0.9 0-0, 0.11 0-1, 2.0 0-2, 2.4 0-3, 3.0 0-4, 3.8 0-5, 3.9 0-6",  # FIND_COORDINATOR
    11: "0.9 0-0, 0.10.1 0-1, 0.11 0-2, 2.0 0-3, 2.2 0-4, 2.3 0-5, 2.4 0-6, 2.5 0-7, 3.2 0-9",  # JOIN_GROUP
    12: "0.9 0-0, 0.11 0-1, 2.0 0-2, 2.3 0-3, 2.4 0-4",  # HEARTBEAT
    13: "0.9 0-0, 0.11 0-1, 2.0 0-2, 2.4 0-4, 3.2 0-5",  # LEAVE_GROUP
    14: "0.9 0-0, 0.11 0-1, 2.0 0-2, 2.3 0-3, 2.4 0-4, 2.5 0-5",  # SYNC_GROUP
    15: "0.9 0-0, 0.11 0-1, 2.0 0-2, 2.3 0-3, 2.4 0-5, 4.0 0-6",  # DESCRIBE_GROUPS
    16: "0.9 0-0, 0.11 0-1, 2.0 0-2, 2.4 0-3, 2.6 0-4, 3.8 0-5",  # LIST_GROUPS
    17: "0.10.0 0-0, 1.0 0-1",  # SASL_HANDSHAKE
    18: "0.10.0 0-0, 0.11 0-1, 2.0 0-2, 2.4 0-3, 3.9 0-4, 4.4 0-5",  # API_VERSIONS
    19: "0.10.1 0-0, 0.10.2 0-1, 0.11 0-2, 2.0 0-3, 2.4 0-5, 2.7 0-6, 2.8 0-7, 4.0 2-7",  # CREATE_TOPICS
    20: "0.10.1 0-0, 0.11 0-1, 2.0 0-2, 2.1 0-3, 2.4 0-4, 2.7 0-5, 2.8 0-6, 4.0 1-6",  # DELETE_TOPICS
    21: "0.11 0-0, 2.0 0-1, 2.6 0-2",  # DELETE_RECORDS
    22: "0.11 0-0, 2.0 0-1, 2.4 0-2, 2.5 0-3, 2.7 0-4, 3.8 0-5",  # INIT_PRODUCER_ID
    23: "0.11 0-0, 2.0 0-1, 2.1 0-2, 2.3 0-3, 2.8 0-4, 4.0 2-4",  # OFFSET_FOR_LEADER_EPOCH
    24: "0.11 0-0, 2.0 0-1, 2.7 0-2, 2.8 0-3, 3.6 0-4, 3.8 0-5",  # ADD_PARTITIONS_TO_TXN
    25: "0.11 0-0, 2.0 0-1, 2.7 0-2, 2.8 0-3, 3.8 0-4",  # ADD_OFFSETS_TO_TXN
    26: "0.11 0-0, 2.0 0-1, 2.7 0-2, 2.8 0-3, 3.8 0-4, 4.0 0-5",  # END_TXN
    27: "0.11 0-0, 2.8 0-1, 4.0 1-1, 4.2 1-2",  # WRITE_TXN_MARKERS
    28: "0.11 0-0, 2.0 0-1, 2.1 0-2, 2.5 0-3, 3.8 0-4, 4.0 0-5, 4.4 0-6",  # TXN_OFFSET_COMMIT
    29: "0.11 0-0, 2.0 0-1, 2.5 0-2, 3.3 0-3, 4.0 1-3",  # DESCRIBE_ACLS
    30: "0.11 0-0, 2.0 0-1, 2.5 0-2, 3.3 0-3, 4.0 1-3",  # CREATE_ACLS
    31: "0.11 0-0, 2.0 0-1, 2.5 0-2, 3.3 0-3, 4.0 1-3",  # DELETE_ACLS
    32: "0.11 0-0, 1.1 0-1, 2.0 0-2, 2.6 0-3, 2.8 0-4, 4.0 1-4",  # DESCRIBE_CONFIGS
    33: "0.11 0-0, 2.0 0-1, 2.8 0-2",  # ALTER_CONFIGS
    34: "1.0 0-0, 2.0 0-1, 2.8 0-2, 4.0 1-2",  # ALTER_REPLICA_LOG_DIRS
    35: "1.0 0-0, 2.0 0-1, 2.6 0-2, 3.2 0-3, 3.3 0-4, 4.0 1-4, 4.3 1-5",  # DESCRIBE_LOG_DIRS
    36: "1.0 0-0, 2.2 0-1, 2.5 0-2",  # SASL_AUTHENTICATE
    37: "1.0 0-0, 2.0 0-1, 2.5 0-2, 2.7 0-3",  # CREATE_PARTITIONS
    38: "1.1 0-0, 2.0 0-1, 2.4 0-2, 3.3 0-3, 4.0 1-3",  # CREATE_DELEGATION_TOKEN
    39: "1.1 0-0, 2.0 0-1, 2.5 0-2, 4.0 1-2",  # RENEW_DELEGATION_TOKEN
    40: "1.1 0-0, 2.0 0-1, 2.5 0-2, 4.0 1-2",  # EXPIRE_DELEGATION_TOKEN
    41: "1.1 0-0, 2.0 0-1, 2.5 0-2, 3.3 0-3, 4.0 1-3",  # DESCRIBE_DELEGATION_TOKEN
    42: "1.1 0-0, 2.0 0-1, 2.4 0-2, 4.4 0-3",  # DELETE_GROUPS
    43: "2.2 0-0, 2.4 0-2",  # ELECT_LEADERS
    44: "2.3 0-0, 2.4 0-1",  # INCREMENTAL_ALTER_CONFIGS
    45: "2.4 0-0, 4.1 0-1",  # ALTER_PARTITION_REASSIGNMENTS
    46: "2.4 0-0",  # LIST_PARTITION_REASSIGNMENTS
    47: "2.4 0-0",  # OFFSET_DELETE
    48: "2.6 0-0, 2.8 0-1",  # DESCRIBE_CLIENT_QUOTAS
    49: "2.6 0-0, 2.8 0-1",  # ALTER_CLIENT_QUOTAS
    50: "2.7 0-0",  # DESCRIBE_USER_SCRAM_CREDENTIALS
    51: "2.7 0-0",  # ALTER_USER_SCRAM_CREDENTIALS
    55: "4.0 0-2",  # DESCRIBE_QUORUM
    56: "2.7 0-0, 3.2 0-1, 3.3 0-2, 3.5 0-3, 4.0 -",  # ALTER_PARTITION
    57: "2.7 0-0, 3.3 0-1, 4.0 0-2",  # UPDATE_FEATURES
    58: "3.4 0-0, 4.0 -",  # ENVELOPE
    60: "2.8 0-0, 3.7 0-1, 4.0 0-2",  # DESCRIBE_CLUSTER
    61: "2.8 0-0",  # DESCRIBE_PRODUCERS
    64: "4.0 0-0",  # UNREGISTER_BROKER
    65: "3.0 0-0",  # DESCRIBE_TRANSACTIONS
    66: "3.0 0-0, 3.8 0-1, 4.1 0-2",  # LIST_TRANSACTIONS
    67: "3.0 0-0, 4.0 -",  # ALLOCATE_PRODUCER_IDS
    68: "3.7 0-0, 4.0 0-1",  # CONSUMER_GROUP_HEARTBEAT
    69: "3.8 0-0, 4.0 0-1",  # CONSUMER_GROUP_DESCRIBE
    74: "4.0 0-0, 4.1 0-1",  # LIST_CONFIG_RESOURCES
    75: "4.0 0-0",  # DESCRIBE_TOPIC_PARTITIONS
    76: "4.1 1-1",  # SHARE_GROUP_HEARTBEAT
    77: "4.1 1-1",  # SHARE_GROUP_DESCRIBE
    78: "4.1 1-1, 4.2 1-2",  # SHARE_FETCH
    79: "4.1 1-1, 4.2 1-2",  # SHARE_ACKNOWLEDGE
    80: "4.0 0-0, 4.2 0-1",  # ADD_RAFT_VOTER
    81: "4.0 0-0",  # REMOVE_RAFT_VOTER
    83: "4.1 0-0",  # INITIALIZE_SHARE_GROUP_STATE
    84: "4.1 0-0",  # READ_SHARE_GROUP_STATE
    85: "4.1 0-0, 4.2 0-1",  # WRITE_SHARE_GROUP_STATE
    86: "4.1 0-0",  # DELETE_SHARE_GROUP_STATE
    87: "4.1 0-0, 4.2 0-1",  # READ_SHARE_GROUP_STATE_SUMMARY
    88: "4.2 0-0, 4.4 0-1",  # STREAMS_GROUP_HEARTBEAT
    89: "4.2 0-0, 4.4 0-1",  # STREAMS_GROUP_DESCRIBE
    90: "4.1 0-0, 4.2 0-1",  # DESCRIBE_SHARE_GROUP_OFFSETS
    91: "4.1 0-0",  # ALTER_SHARE_GROUP_OFFSETS
    92: "4.1 0-0",  # DELETE_SHARE_GROUP_OFFSETS
    93: "4.4 0-0",  # STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE
    94: "4.4 0-0",  # UNREGISTER_CONTROLLER
}
"""Versions by API: "release oldest-newest" wherever they changed, "-" where the API went away."""

FEATURES = {
    "eligible.leader.replicas.version": "4.0 0-1-0, 4.1 0-1-1",
    "group.version": "4.0 0-1-1",
    "kraft.version": "4.0 0-1-0",
    "metadata.version": "4.0 7-25-25, 4.1 7-27-27, 4.2 7-29-29, 4.3 7-30-30, 4.4 7-33-33",
    "share.version": "4.1 0-1-0, 4.2 0-1-1, 4.4 0-2-2",
    "streams.version": "4.2 0-1-1",
    "transaction.version": "4.0 0-2-2",
}
"""Features: "release lowest-highest-switched on" wherever they changed."""
