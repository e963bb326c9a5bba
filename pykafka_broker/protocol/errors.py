"""Kafka's error codes, and how errors travel inside the broker."""

from __future__ import annotations

import enum
from typing import Self


class MalformedError(ValueError):
    """Bytes that do not decode."""


class ErrorCode(enum.IntEnum):
    """Every error code of the protocol, each with a text for people."""

    text: str

    def __new__(cls, code: int, text: str) -> Self:
        member = int.__new__(cls, code)
        member._value_ = code
        member.text = text
        return member

    UNKNOWN_SERVER_ERROR = -1, "The broker met an error it did not expect."
    NONE = 0, ""
    OFFSET_OUT_OF_RANGE = 1, "The partition does not hold the offset asked for."
    CORRUPT_MESSAGE = 2, "The batch is corrupt: its checksum or its structure is wrong."
    UNKNOWN_TOPIC_OR_PARTITION = 3, "This broker does not host the partition."
    INVALID_FETCH_SIZE = 4, "The fetch size is not valid."
    LEADER_NOT_AVAILABLE = 5, "The partition has no leader at the moment."
    NOT_LEADER_OR_FOLLOWER = 6, "This broker is not the replica the request needs."
    REQUEST_TIMED_OUT = 7, "The request took longer than its timeout."
    BROKER_NOT_AVAILABLE = 8, "The broker is not available."
    REPLICA_NOT_AVAILABLE = 9, "The replica of the partition is not available."
    MESSAGE_TOO_LARGE = 10, "The batch is larger than the broker accepts."
    STALE_CONTROLLER_EPOCH = 11, "The controller has moved to another broker."
    OFFSET_METADATA_TOO_LARGE = 12, "The metadata beside the offset is too large."
    NETWORK_EXCEPTION = 13, "The connection broke before the response came."
    COORDINATOR_LOAD_IN_PROGRESS = 14, "The coordinator is still loading its state."
    COORDINATOR_NOT_AVAILABLE = 15, "The coordinator is not available."
    NOT_COORDINATOR = 16, "This broker is not the coordinator."
    INVALID_TOPIC_EXCEPTION = 17, "The topic's name or kind does not allow this."
    RECORD_LIST_TOO_LARGE = 18, "The batch is larger than a segment may be."
    NOT_ENOUGH_REPLICAS = 19, "Too few replicas are in sync to accept the batch."
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "The batch was appended, but too few replicas are in sync."
    INVALID_REQUIRED_ACKS = 21, "The value of acks is not valid."
    ILLEGAL_GENERATION = 22, "The generation is not the current one of the group."
    INCONSISTENT_GROUP_PROTOCOL = 23, "The member shares no protocol with the group."
    INVALID_GROUP_ID = 24, "The group id is not valid."
    UNKNOWN_MEMBER_ID = 25, "The group does not know this member."
    INVALID_SESSION_TIMEOUT = 26, "The session timeout is outside the broker's limits."
    REBALANCE_IN_PROGRESS = 27, "The group is rebalancing; the member should join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, "The offsets to commit are too large."
    TOPIC_AUTHORIZATION_FAILED = 29, "Not authorized for the topic."
    GROUP_AUTHORIZATION_FAILED = 30, "Not authorized for the group."
    CLUSTER_AUTHORIZATION_FAILED = 31, "Not authorized for the cluster."
    INVALID_TIMESTAMP = 32, "A record's timestamp is out of the accepted range."
    UNSUPPORTED_SASL_MECHANISM = 33, "The SASL mechanism is not offered here."
    ILLEGAL_SASL_STATE = 34, "The request does not fit the state of authentication."
    UNSUPPORTED_VERSION = 35, "This version is not supported."
    TOPIC_ALREADY_EXISTS = 36, "A topic of this name exists already."
    INVALID_PARTITIONS = 37, "The number of partitions is not valid."
    INVALID_REPLICATION_FACTOR = 38, "The replication factor is below 1 or above the number of brokers."
    INVALID_REPLICA_ASSIGNMENT = 39, "The assignment of replicas is not valid."
    INVALID_CONFIG = 40, "The configuration is not valid."
    NOT_CONTROLLER = 41, "This broker is not the controller."
    INVALID_REQUEST = 42, "The request makes no sense to this broker."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "The record format in use does not allow this."
    POLICY_VIOLATION = 44, "A policy of the cluster forbids this."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "The sequence number does not follow the last one."
    DUPLICATE_SEQUENCE_NUMBER = 46, "The sequence number was seen before."
    INVALID_PRODUCER_EPOCH = 47, "The producer's epoch is too old."
    INVALID_TXN_STATE = 48, "The state of the transaction does not allow this."
    INVALID_PRODUCER_ID_MAPPING = 49, "The producer id does not belong to the transactional id."
    INVALID_TRANSACTION_TIMEOUT = 50, "The transaction timeout is above the broker's limit."
    CONCURRENT_TRANSACTIONS = 51, "Another operation on the transaction is still under way."
    TRANSACTION_COORDINATOR_FENCED = 52, "The sender no longer coordinates the transaction."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "Not authorized for the transactional id."
    SECURITY_DISABLED = 54, "Security features are switched off."
    OPERATION_NOT_ATTEMPTED = 55, "Not tried, because another part of the request failed."
    KAFKA_STORAGE_ERROR = 56, "The log could not be read or written on disk."
    LOG_DIR_NOT_FOUND = 57, "The broker has no such log directory."
    SASL_AUTHENTICATION_FAILED = 58, "SASL authentication failed."
    UNKNOWN_PRODUCER_ID = 59, "The broker no longer knows this producer id."
    REASSIGNMENT_IN_PROGRESS = 60, "The partition is being reassigned."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "Delegation tokens are switched off."
    DELEGATION_TOKEN_NOT_FOUND = 62, "There is no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "The principal neither owns nor may renew the token."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "Delegation tokens cannot be asked for on this channel."
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "Not authorized for the delegation token."
    DELEGATION_TOKEN_EXPIRED = 66, "The delegation token has expired."
    INVALID_PRINCIPAL_TYPE = 67, "The type of the principal is not supported."
    NON_EMPTY_GROUP = 68, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, "There is no group of this id."
    FETCH_SESSION_ID_NOT_FOUND = 70, "There is no fetch session of this id."
    INVALID_FETCH_SESSION_EPOCH = 71, "The epoch is not the next one of the fetch session."
    LISTENER_NOT_FOUND = 72, "The leader has no listener like the one asked."
    TOPIC_DELETION_DISABLED = 73, "Deleting topics is switched off."
    FENCED_LEADER_EPOCH = 74, "The request's leader epoch is older than the broker's."
    UNKNOWN_LEADER_EPOCH = 75, "The request's leader epoch is newer than the broker's."
    UNSUPPORTED_COMPRESSION_TYPE = 76, "The client cannot read the compression in use."
    STALE_BROKER_EPOCH = 77, "The broker's epoch has changed."
    OFFSET_NOT_AVAILABLE = 78, "The new leader does not know its high watermark yet."
    MEMBER_ID_REQUIRED = 79, "The member should join again with the id it was just given."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "The preferred leader is not available."
    GROUP_MAX_SIZE_REACHED = 81, "The group is full."
    FENCED_INSTANCE_ID = 82, "Another member has taken over this instance id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "No replica that could lead is available."
    ELECTION_NOT_NEEDED = 84, "The partition needs no election."
    NO_REASSIGNMENT_IN_PROGRESS = 85, "No reassignment is under way."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "The group is subscribed to the topic."
    INVALID_RECORD = 87, "The broker refused a record of the batch."
    UNSTABLE_OFFSET_COMMIT = 88, "Offsets of an open transaction are pending."
    THROTTLING_QUOTA_EXCEEDED = 89, "The quota is used up."
    PRODUCER_FENCED = 90, "A newer producer uses the transactional id."
    RESOURCE_NOT_FOUND = 91, "There is no such resource."
    DUPLICATE_RESOURCE = 92, "The request names the same resource twice."
    UNACCEPTABLE_CREDENTIAL = 93, "The credential does not meet the requirements."
    INCONSISTENT_VOTER_SET = 94, "Sender or receiver is not one of the voters."
    INVALID_UPDATE_VERSION = 95, "The version given for the update is not valid."
    FEATURE_UPDATE_FAILED = 96, "The features could not be updated."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "The forwarded principal could not be read."
    SNAPSHOT_NOT_FOUND = 98, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, "The position lies outside the snapshot."
    UNKNOWN_TOPIC_ID = 100, "This broker hosts no topic of this id."
    DUPLICATE_BROKER_REGISTRATION = 101, "The broker id is in use."
    BROKER_ID_NOT_REGISTERED = 102, "No broker of this id is registered."
    INCONSISTENT_TOPIC_ID = 103, "The topic id is not the one of the log."
    INCONSISTENT_CLUSTER_ID = 104, "The cluster id is not the one of this cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, "There is no such transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "The fetch session mixes topic names and topic ids."
    INELIGIBLE_REPLICA = 107, "A replica may not be part of the in-sync set."
    NEW_LEADER_ELECTED = 108, "The partition was changed, and has a new leader."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "The offset has moved to tiered storage."
    FENCED_MEMBER_EPOCH = 110, "The member's epoch was fenced; it should join again from the start."
    UNRELEASED_INSTANCE_ID = 111, "Another member still holds the instance id."
    UNSUPPORTED_ASSIGNOR = 112, "The group does not support the assignor."
    STALE_MEMBER_EPOCH = 113, "The member's epoch is out of date."
    MISMATCHED_ENDPOINT_TYPE = 114, "The request came to the wrong kind of endpoint."
    UNSUPPORTED_ENDPOINT_TYPE = 115, "This kind of endpoint is not supported."
    UNKNOWN_CONTROLLER_ID = 116, "There is no controller of this id."
    UNKNOWN_SUBSCRIPTION_ID = 117, "The telemetry subscription is unknown or out of date."
    TELEMETRY_TOO_LARGE = 118, "The telemetry is larger than the broker accepts."
    INVALID_REGISTRATION = 119, "The registration of the broker is not valid."
    TRANSACTION_ABORTABLE = 120, "The transaction failed; it can be aborted and tried anew."
    INVALID_RECORD_STATE = 121, "The state of the record does not allow this acknowledgement."
    SHARE_SESSION_NOT_FOUND = 122, "There is no such share session."
    INVALID_SHARE_SESSION_EPOCH = 123, "The epoch is not the next one of the share session."
    FENCED_STATE_EPOCH = 124, "The state epoch does not match."
    INVALID_VOTER_KEY = 125, "The voter's key is not the one of this replica."
    DUPLICATE_VOTER = 126, "The voter is in the set already."
    VOTER_NOT_FOUND = 127, "The voter is not in the set."
    INVALID_REGULAR_EXPRESSION = 128, "The regular expression is not valid."
    REBOOTSTRAP_REQUIRED = 129, "The client's metadata is too old; it should start over."
    STREAMS_INVALID_TOPOLOGY = 130, "The topology is not valid."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "The epoch of the topology is not valid."
    STREAMS_TOPOLOGY_FENCED = 132, "The epoch of the topology is out of date."
    SHARE_SESSION_LIMIT_REACHED = 133, "There are too many share sessions."
    GROUP_DELETION_FAILED = 134, "The group could not be deleted."
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135, "The description of the topology could not be updated."
    CONTROLLER_ID_NOT_REGISTERED = 136, "No controller of this id is registered."


_LONGEST_TEXT = 8_000
"""Characters: in bytes they are still fewer than a string may have."""


class KafkaError(Exception):
    """A failure that has an error code; it becomes part of a response once, in the handler."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    @property
    def text(self) -> str:
        """The message, or the general one of the code. What it repeats of a request may be too long for a response."""
        return self.code.text if self.message is None else self.message[:_LONGEST_TEXT]

    def __str__(self) -> str:
        return f"{self.code.name}: {self.text}"
