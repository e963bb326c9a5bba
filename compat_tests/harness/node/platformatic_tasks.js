// The scenarios' words in @platformatic/kafka; they are described in compat_tests/features/__init__.py.
"use strict";
const { serve } = require("./tasks.js");
const { Admin, Consumer, ConfigResourceTypes, Producer } = require("@platformatic/kafka");

const SECONDS = 60;
const ACKS = { 0: 0, 1: 1, all: -1 };
const EARLIEST = -2;
const SET = 0;
const common = { clientId: "tasks", bootstrapBrokers: [process.argv[2]], timeout: 10000 };
const admin = new Admin({ ...common, retries: 2 });
const producers = new Map();
const committers = new Map();

const packed = (data) => (data === null || data === undefined ? null : data.toString("base64"));
const unpacked = (text) => (text === null ? null : Buffer.from(text, "base64"));

function producer(acks, codec, idempotent) {
  const key = `${acks} ${codec} ${idempotent}`;
  if (!producers.has(key)) {
    producers.set(key, new Producer({ ...common, idempotent, retries: 20, retryDelay: 500 }));
  }
  return producers.get(key);
}

function committer(groupId) {
  if (!committers.has(groupId)) committers.set(groupId, new Consumer({ ...common, groupId }));
  return committers.get(groupId);
}

const reader = () =>
  new Consumer({ ...common, groupId: `reader-${process.pid}-${Math.random()}`, maxWaitTime: 100, timeout: 30000 });

const headersOf = (record) => new Map(record.headers.map(([name, value]) => [Buffer.from(name), unpacked(value)]));

const words = {
  async cluster() {
    const { brokers } = await admin.metadata({ topics: [], forceUpdate: true });
    return { brokers: [...brokers.values()].map(({ host, port }) => `${host}:${port}`) };
  },
  async create({ topic, count, configs }) {
    const entries = Object.entries(configs).map(([name, value]) => ({ name, value }));
    await admin.createTopics({ topics: [topic], partitions: count, replicas: 1, configs: entries });
  },
  async topics() {
    const names = await admin.listTopics();
    const { topics } = await admin.metadata({ topics: names, forceUpdate: true });
    return { topics: Object.fromEntries([...topics].map(([name, found]) => [name, found.partitionsCount])) };
  },
  async delete({ topic }) {
    await admin.deleteTopics({ topics: [topic] });
  },
  async grow({ topic, count }) {
    await admin.createPartitions({ topics: [{ name: topic, count }] });
  },
  async configs({ topic }) {
    const resources = [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: topic }];
    const [found] = await admin.describeConfigs({ resources });
    return { configs: Object.fromEntries(found.configs.map((entry) => [entry.name, entry.value])) };
  },
  async alter({ topic, configs }) {
    const changes = Object.entries(configs).map(([name, value]) => ({ name, value, configOperation: SET }));
    const resources = [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: topic, configs: changes }];
    await admin.incrementalAlterConfigs({ resources });
  },
  async trim({ topic, partition, offset }) {
    await admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition, offset: BigInt(offset) }] }] });
  },
  async produce({ topic, acks, codec, idempotent, records }) {
    const messages = records.map((record) => ({
      topic,
      partition: record.partition,
      key: unpacked(record.key),
      value: unpacked(record.value),
      timestamp: BigInt(record.timestamp),
      headers: headersOf(record),
    }));
    const how = { acks: ACKS[acks], compression: codec, idempotent, autocreateTopics: false };
    const { offsets } = await producer(acks, codec, idempotent).send({ messages, ...how });
    const next = new Map((offsets || []).map((each) => [each.partition, Number(each.offset)]));
    return {
      offsets: records.map(({ partition }) => {
        if (!next.has(partition)) return -1;
        const offset = next.get(partition);
        next.set(partition, offset + 1);
        return offset;
      }),
    };
  },
  // It has no assignment by hand: a group of one reads from where it is told to.
  async consume({ topic, partitions, offset, count }) {
    const from =
      offset === EARLIEST
        ? { mode: "earliest" }
        : { mode: "manual", offsets: partitions.map((partition) => ({ topic, partition, offset: BigInt(offset) })) };
    const consumer = reader();
    const seen = [];
    const stream = await consumer.consume({ topics: [topic], autocommit: false, fallbackMode: "earliest", ...from });
    const giveUp = setTimeout(() => stream.close(), SECONDS * 1000);
    for await (const message of stream) {
      if (!partitions.includes(message.partition) || Number(message.offset) < offset) continue;
      seen.push({
        partition: message.partition,
        offset: Number(message.offset),
        timestamp: Number(message.timestamp),
        key: packed(message.key),
        value: packed(message.value),
        headers: [...message.headers].map(([name, value]) => [name.toString(), packed(value)]),
      });
      if (seen.length >= count) break;
    }
    clearTimeout(giveUp);
    await consumer.close(true);
    return { records: seen };
  },
  async offset_at({ topic, partition, timestamp }) {
    const partitions = [{ partitionIndex: partition, timestamp: BigInt(timestamp) }];
    const [found] = await admin.listOffsets({ topics: [{ name: topic, partitions }] });
    return { offset: Number(found.partitions[0].offset) };
  },
  async commit({ group, topic, partition, offset }) {
    const topics = [{ name: topic, partitionOffsets: [{ partition, offset: BigInt(offset) }] }];
    await admin.alterConsumerGroupOffsets({ groupId: group, topics });
  },
  async committed({ group, topic, partition }) {
    const found = await committer(group).listCommittedOffsets({ topics: [{ topic, partitions: [partition] }] });
    return { offset: Number(found.get(topic)[partition]) };
  },
  async groups() {
    return { groups: [...(await admin.listGroups()).keys()] };
  },
  async forget({ group }) {
    await admin.deleteGroups({ groups: [group] });
  },
};

// What went wrong is at the bottom of errors within errors.
function told(error) {
  const inner = [...(error.errors || []), ...(error.cause ? [error.cause] : [])];
  return [error.apiId, error.message, error.serverErrorMessage, ...inner.map(told)].filter(Boolean).join(": ");
}

serve(words, told);
