// The scenarios' words in kafkajs; they are described in compat_tests/features/__init__.py.
"use strict";
const { serve } = require("./tasks.js");
const { Kafka, CompressionTypes, ConfigResourceTypes, Partitioners, logLevel } = require("kafkajs");

const SECONDS = 60;
const kafka = new Kafka({
  brokers: [process.argv[2]],
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 100, maxRetryTime: 1000, retries: 20 },
});
const admin = kafka.admin({ retry: { retries: 2 } });
const producers = new Map();
const ACKS = { 0: 0, 1: 1, all: -1 };

const packed = (data) => (data === null || data === undefined ? null : data.toString("base64"));
const unpacked = (text) => (text === null ? null : Buffer.from(text, "base64"));

async function producer(acks, codec, idempotent) {
  const key = `${acks} ${codec} ${idempotent}`;
  if (!producers.has(key)) {
    const made = kafka.producer({
      idempotent,
      createPartitioner: Partitioners.DefaultPartitioner,
      allowAutoTopicCreation: false,
    });
    await made.connect();
    producers.set(key, made);
  }
  return producers.get(key);
}

// Headers by the same name are a list here; the scenarios repeat none.
const headersOf = (record) => Object.fromEntries(record.headers.map(([name, value]) => [name, unpacked(value)]));

const words = {
  async cluster() {
    const { brokers } = await admin.describeCluster();
    return { brokers: brokers.map((broker) => `${broker.host}:${broker.port}`) };
  },
  async create({ topic, count, configs }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
    const wanted = { topic, numPartitions: count, replicationFactor: 1, configEntries };
    if (!(await admin.createTopics({ topics: [wanted], waitForLeaders: false }))) {
      throw new Error("the topic exists"); // it answers false and raises nothing
    }
  },
  async topics() {
    const { topics } = await admin.fetchTopicMetadata();
    return { topics: Object.fromEntries(topics.map((topic) => [topic.name, topic.partitions.length])) };
  },
  async delete({ topic }) {
    await admin.deleteTopics({ topics: [topic] });
  },
  async grow({ topic, count }) {
    await admin.createPartitions({ topicPartitions: [{ topic, count }] });
  },
  async configs({ topic }) {
    const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic }];
    const [found] = (await admin.describeConfigs({ resources, includeSynonyms: false })).resources;
    return { configs: Object.fromEntries(found.configEntries.map((entry) => [entry.configName, entry.configValue])) };
  },
  async alter({ topic, configs }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
    await admin.alterConfigs({ validateOnly: false, resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }] });
  },
  async trim({ topic, partition, offset }) {
    await admin.fetchTopicOffsets(topic); // it deletes only from topics it has met
    await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(offset) }] });
  },
  async produce({ topic, acks, codec, idempotent, records }) {
    const messages = records.map((record) => ({
      partition: record.partition,
      key: unpacked(record.key),
      value: unpacked(record.value),
      timestamp: String(record.timestamp),
      headers: headersOf(record),
    }));
    const compression = codec === "gzip" ? CompressionTypes.GZIP : CompressionTypes.None;
    const made = await producer(acks, codec, idempotent);
    const answers = (await made.send({ topic, acks: ACKS[acks], compression, messages })) || [];
    const next = new Map(answers.map((each) => [each.partition, Number(each.baseOffset)]));
    const offsets = records.map(({ partition }) => {
      if (!next.has(partition)) return -1;
      const offset = next.get(partition);
      next.set(partition, offset + 1);
      return offset;
    });
    return { offsets };
  },
  // It has no assignment by hand: a group of one reads from where it is told to.
  async consume({ topic, partitions, offset, count }) {
    const groupId = `reader-${process.pid}-${Date.now()}-${Math.random()}`;
    const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 100, sessionTimeout: 10000 });
    const seen = [];
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    const done = new Promise((resolve) => {
      const giveUp = setTimeout(resolve, SECONDS * 1000);
      const eachMessage = async ({ partition, message }) => {
        if (!partitions.includes(partition) || Number(message.offset) < offset || seen.length >= count) return;
        const headers = Object.entries(message.headers || {}).map(([name, value]) => [name, packed(value)]);
        seen.push({
          partition,
          offset: Number(message.offset),
          timestamp: Number(message.timestamp),
          key: packed(message.key),
          value: packed(message.value),
          headers,
        });
        if (seen.length >= count) {
          clearTimeout(giveUp);
          resolve();
        }
      };
      consumer.run({ autoCommit: false, eachMessage });
      if (offset >= 0) {
        partitions.forEach((partition) => consumer.seek({ topic, partition, offset: String(offset) }));
      }
    });
    await done;
    await consumer.disconnect();
    return { records: seen };
  },
  async offset_at({ topic, partition, timestamp }) {
    const found = await admin.fetchTopicOffsetsByTimestamp(topic, timestamp);
    return { offset: Number(found.find((each) => each.partition === partition).offset) };
  },
  async commit({ group, topic, partition, offset, note }) {
    await admin.setOffsets({ groupId: group, topic, partitions: [{ partition, offset: String(offset) }] });
  },
  async committed({ group, topic, partition }) {
    const [found] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
    return { offset: Number(found.partitions.find((each) => each.partition === partition).offset) };
  },
  async groups() {
    return { groups: (await admin.listGroups()).groups.map((group) => group.groupId) };
  },
  async forget({ group }) {
    await admin.deleteGroups([group]);
  },
};

function told(error) {
  const parts = [error.name, error.type, error.message];
  for (const inner of error.errors || error.groups || (error.partitions || []).map(({ error }) => error)) parts.push(inner.type, inner.message);
  return parts.filter(Boolean).join(": ");
}

admin.connect().then(() => serve(words, told));
