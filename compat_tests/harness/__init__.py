"""Group members as programs, one a client library, all speaking the same lines.

A program is given one JSON object as its only argument:

    bootstrap, group, topic     where to consume
    members                     names of the members to run in this process
    session_ms, heartbeat_ms    timeouts of the classic protocol (with KIP-848 the broker decides)
    protocol                    "classic" or "consumer"
    assignor                    the client's own name of an assignor, or null for its default
    metadata                    text to commit beside each position, or null
    static                      whether a member's name is also its group.instance.id
    hold                        whether to wait for the line "go" before joining

It prints one JSON object a line, each with `member`, `event` and `at` (seconds since 1970):

    ready                       the program runs; the members join next
    assigned, revoked           `partitions`: what the member was given, what it lets go
    records                     `partition` and `records`: pairs of offset and value, as the application sees them
    committed                   `positions`: partition to the position the broker acknowledged
    left                        the member said goodbye and is done
    trouble                     `text`: what the library complained of; the member goes on

It reads lines: `leave NAME` lets one member leave cleanly; the end of its input lets all leave and ends it.
kcat's program also takes `kill`: its members are processes of their own.
Records are reported first and committed after, so what was committed was seen.
"""
