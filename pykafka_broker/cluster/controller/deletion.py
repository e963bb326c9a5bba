"""Deleting topics: every replica is told to delete, and when all have, the topic leaves the tree.

A replica that is not online holds the deletion up until its broker is back; the others delete at once. One that
answers with an error is asked again only when some broker comes back, so that a broken disk is not asked forever.
Unlike Kafka's, a deletion does not wait for a reassignment of the topic: old and new replicas go alike.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.controller.state import Deletion
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Iterable, Mapping

    from pykafka_broker.cluster.controller.draft import Draft
    from pykafka_broker.cluster.controller.requests import TopicPartition
    from pykafka_broker.cluster.view import TopicInfo


def ask(draft: Draft, marked: Iterable[str]) -> None:
    """Topics found under /admin/delete_topics. Those that do not exist, or may not go, lose their mark."""
    for name in marked:
        if name not in draft.view.topics or not draft.settings.delete_topic_enable:
            draft.removals[znodes.delete_topic_path(name)] = None
        elif name not in draft.deletions:
            draft.deletions[name] = Deletion()
            draft.outbox.tell_everybody(*(tp for tp, _ in draft.partitions_of(name)))
            advance(draft, name)


def wish(draft: Draft, target: str | uuid.UUID) -> TopicInfo | KafkaError:
    """DeleteTopics: leaves a mark, so that another controller knows of it too, and begins."""
    view = draft.view
    topic = view.topics.get(target) if isinstance(target, str) else view.topics_by_id.get(target)
    if topic is None:
        by_name = isinstance(target, str)
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if by_name else ErrorCode.UNKNOWN_TOPIC_ID)
    if not draft.settings.delete_topic_enable:
        return KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)
    if topic.name not in draft.deletions:
        draft.create(znodes.delete_topic_path(topic.name))
        ask(draft, [topic.name])
    return topic


def advance(draft: Draft, name: str) -> None:
    """Starts what can be started and finishes when all is done."""
    deletion = draft.deletions.get(name)
    if deletion is None:
        return
    replicas = {(number, r) for (_, number), p in draft.partitions_of(name) for r in p.replicas}
    if replicas <= deletion.deleted:
        _complete(draft, name)
        return
    waiting = replicas - deletion.deleted - deletion.started - deletion.failed
    begun = {(number, r) for number, r in waiting if draft.is_serving((name, number), r)}
    for number, broker in sorted(begun):
        draft.outbox.stop((name, number), [broker], delete=True)
    draft.deletions[name] = replace(deletion, started=deletion.started | begun)


def answered(draft: Draft, broker: int, error: ErrorCode, errors: Mapping[TopicPartition, ErrorCode]) -> None:
    """The broker's answer to a StopReplica that deletes; answers to anything else are of no concern here."""
    by_topic: dict[str, dict[tuple[int, int], bool]] = defaultdict(dict)
    for (name, number), found in errors.items():
        by_topic[name][number, broker] = error is ErrorCode.NONE and found is ErrorCode.NONE
    for name, outcomes in by_topic.items():
        deletion = draft.deletions.get(name)
        if deletion is None:
            continue
        asked = deletion.started & outcomes.keys()
        done = {replica for replica in asked if outcomes[replica]}
        draft.deletions[name] = Deletion(
            deletion.started - asked, deletion.deleted | done, deletion.failed | (asked - done)
        )
        advance(draft, name)


def lose(draft: Draft, gone: Collection[int]) -> None:
    """Brokers went away with requests unanswered: their replicas wait until they are back."""
    for name, deletion in draft.deletions.items():
        started = frozenset(replica for replica in deletion.started if replica[1] not in gone)
        draft.deletions[name] = replace(deletion, started=started)


def resume(draft: Draft) -> None:
    """A broker came back: what failed is tried again."""
    for name, deletion in list(draft.deletions.items()):
        draft.deletions[name] = replace(deletion, failed=frozenset())
        advance(draft, name)


def _complete(draft: Draft, name: str) -> None:
    del draft.deletions[name]
    # The mark goes last: a controller that takes over in between finishes the work.
    for path in (
        znodes.topic_path(name),
        znodes.topic_config_path(name),
        znodes.delete_topic_path(name),
    ):
        draft.removals[path] = None
    draft.tree_reassignments = {tp: to for tp, to in draft.tree_reassignments.items() if tp[0] != name}
    draft.adopt_topics(removed=[name])
