"""Where replicas go: Kafka's even spread over brokers and racks, from a start index and a shift."""

from __future__ import annotations

from collections import defaultdict
from itertools import count, zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def spread(
    racks: Mapping[int, str | None], partitions: range, replication_factor: int, start: int, shift: int
) -> dict[int, tuple[int, ...]]:
    """Replicas by partition; the first of each is its preferred leader.

    Leaders go round the brokers from `start`; followers lie `shift` further, one more each round, so that
    the partitions a broker led do not all fall on the same neighbour. When every broker names its rack, a
    partition takes a rack twice only after it has taken each once. `replication_factor` must not exceed
    the number of brokers.
    """
    rack_aware = all(rack is not None for rack in racks.values())
    by_rack: dict[str, list[int]] = defaultdict(list)
    for broker in sorted(racks):
        # One broker without a rack, and racks tell nothing: every broker stands for itself.
        by_rack[racks[broker] or "" if rack_aware else f"{broker:010d}"].append(broker)
    rack_of = {broker: rack for rack, brokers in by_rack.items() for broker in brokers}
    ring = [
        b for layer in zip_longest(*(by_rack[r] for r in sorted(by_rack))) for b in layer if b is not None
    ]
    stride = len(by_rack) if rack_aware else 1
    placed = {}
    for partition in partitions:
        if partition > 0 and partition % len(ring) == 0:
            shift += 1
        first = (partition + start) % len(ring)
        placed[partition] = _replicas(ring, rack_of, first, shift * stride, replication_factor)
    return placed


def _replicas(
    ring: list[int], rack_of: Mapping[int, str], first: int, shift: int, replication_factor: int
) -> tuple[int, ...]:
    chosen = [ring[first]]
    used_racks = {rack_of[ring[first]]}
    rack_count = len(set(rack_of.values()))
    steps = count()
    while len(chosen) < replication_factor:
        broker = ring[(first + 1 + (shift + next(steps)) % (len(ring) - 1)) % len(ring)]
        if broker in chosen or (rack_of[broker] in used_racks and len(used_racks) < rack_count):
            continue
        chosen.append(broker)
        used_racks.add(rack_of[broker])
    return tuple(chosen)
