"""One scenario a feature, played by every client library that can, at several versions.

A library is a small program in compat_tests/harness that is given the bootstrap address as its only argument. It reads
one JSON object a line and answers each with one: `{"ok": {...}}`, or `{"error": "what the library said"}`. Bytes are
base64, null is null. It keeps its producers and its admin client for as long as it runs, as an application does.

    do           with                                                answers
    cluster                                                          brokers: list of host:port
    create       topic, count, configs
    topics                                                           topics: name to number of partitions
    delete       topic
    grow         topic, count
    configs      topic                                               configs: name to value
    alter        topic, configs
    trim         topic, partition, offset
    produce      topic, acks ("0", "1", "all"), codec, idempotent,   offsets: of each record, in order
                 records: partition, key, value, headers, timestamp
    consume      topic, partitions, offset (-2: the beginning),      records: as above, with offset
                 count
    offset_at    topic, partition, timestamp                         offset: -1 past the end
    commit       group, topic, partition, offset, note
    committed    group, topic, partition                             offset, note
    groups                                                           groups: list of names
    forget       group
"""
