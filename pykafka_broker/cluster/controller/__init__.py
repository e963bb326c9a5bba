"""The controller of a cluster, as Apache Kafka 3.9's on ZooKeeper.

`planner.plan` decides, without I/O, what one event changes; `loop.Controller` wins the election, reads events
from the store, commits plans and tells the brokers.
"""
