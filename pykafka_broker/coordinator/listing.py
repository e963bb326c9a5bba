"""Groups as people see them: DescribeGroups (versions 0 to 6) and ListGroups (versions 0 to 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.coordinator.classic_group import ClassicGroup, State
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from pykafka_broker.protocol.messages.list_groups import ListedGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pykafka_broker.coordinator.group import Group

FIRST_VERSION_THAT_KNOWS_MISSING_GROUPS = 6
DEAD = "Dead"


def describe_classic(group_id: str, group: Group | None, version: int) -> DescribedGroup:
    """A classic group. One that there is not, or that is of another kind, is Dead; newer versions say why."""
    if not isinstance(group, ClassicGroup):
        described = DescribedGroup(group_id=group_id, group_state=DEAD)
        if version >= FIRST_VERSION_THAT_KNOWS_MISSING_GROUPS:
            described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            reason = "not found" if group is None else "is not a classic group"
            described.error_message = f"Group {group_id} {reason}."
        return described
    is_stable = group.state is State.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        protocol_type=group.listed_protocol_type,
        protocol_data=group.protocol_name or "" if is_stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def list_groups(groups: Iterable[Group], states: Sequence[str], types: Sequence[str]) -> list[ListedGroup]:
    """Filters are compared without regard to case; an empty one lets all pass."""
    wanted_states = {state.strip().lower() for state in states}
    wanted_types = {kind.strip().lower() for kind in types}
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.listed_protocol_type,
            group_state=group.state_name,
            group_type=group.kind,
        )
        for group in groups
        if (not wanted_states or group.state_name.lower() in wanted_states)
        and (not wanted_types or group.kind.lower() in wanted_types)
    ]
