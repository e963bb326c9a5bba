"""What the project is to serve to clients: every version any release of kafka-clients spoke, of every API for clients.

Held against the definitions inside the official jars by `test_proofs.py`.
"""

from __future__ import annotations

from typing import NamedTuple


class Goal(NamedTuple):
    """An API for clients, and the versions it is to be served in."""

    name: str
    oldest: int
    newest: int


_ROWS = """
0 Produce 0 13
1 Fetch 0 18
2 ListOffsets 0 11
3 Metadata 0 13
8 OffsetCommit 0 10
9 OffsetFetch 0 10
10 FindCoordinator 0 6
11 JoinGroup 0 9
12 Heartbeat 0 4
13 LeaveGroup 0 5
14 SyncGroup 0 5
15 DescribeGroups 0 6
16 ListGroups 0 5
17 SaslHandshake 0 1
18 ApiVersions 0 5
19 CreateTopics 0 7
20 DeleteTopics 0 6
21 DeleteRecords 0 2
22 InitProducerId 0 6
23 OffsetForLeaderEpoch 0 4
24 AddPartitionsToTxn 0 5
25 AddOffsetsToTxn 0 4
26 EndTxn 0 5
28 TxnOffsetCommit 0 6
29 DescribeAcls 0 3
30 CreateAcls 0 3
31 DeleteAcls 0 3
32 DescribeConfigs 0 4
33 AlterConfigs 0 2
34 AlterReplicaLogDirs 0 2
35 DescribeLogDirs 0 5
36 SaslAuthenticate 0 2
37 CreatePartitions 0 3
38 CreateDelegationToken 0 3
39 RenewDelegationToken 0 2
40 ExpireDelegationToken 0 2
41 DescribeDelegationToken 0 3
42 DeleteGroups 0 3
43 ElectLeaders 0 2
44 IncrementalAlterConfigs 0 1
45 AlterPartitionReassignments 0 1
46 ListPartitionReassignments 0 0
47 OffsetDelete 0 0
48 DescribeClientQuotas 0 1
49 AlterClientQuotas 0 1
50 DescribeUserScramCredentials 0 0
51 AlterUserScramCredentials 0 0
57 UpdateFeatures 0 2
60 DescribeCluster 0 2
61 DescribeProducers 0 0
65 DescribeTransactions 0 0
66 ListTransactions 0 2
68 ConsumerGroupHeartbeat 0 1
69 ConsumerGroupDescribe 0 1
71 GetTelemetrySubscriptions 0 0
72 PushTelemetry 0 0
74 ListConfigResources 0 1
75 DescribeTopicPartitions 0 0
76 ShareGroupHeartbeat 1 1
77 ShareGroupDescribe 1 1
78 ShareFetch 1 2
79 ShareAcknowledge 1 2
88 StreamsGroupHeartbeat 0 1
89 StreamsGroupDescribe 0 1
90 DescribeShareGroupOffsets 0 1
91 AlterShareGroupOffsets 0 0
92 DeleteShareGroupOffsets 0 0
93 StreamsGroupTopologyDescriptionUpdate 0 0
"""

GOAL = {
    int(key): Goal(name, int(oldest), int(newest))
    for key, name, oldest, newest in (row.split() for row in _ROWS.strip().splitlines())
}
"""By the number of the API."""
