// Members by kafkajs. The words in and out are described in compat_tests/harness/__init__.py.
'use strict'

const { Kafka, logLevel } = require('kafkajs')
const { orders, tell, live } = require('./member.js')

// kafkajs speaks of assignments only in its events: joined is the whole new share, rebalancing lets go of the old one.
function reportShare(consumer, name) {
  let share = []
  const letGo = () => {
    if (share.length > 0) tell(name, 'revoked', { partitions: share })
    share = []
  }
  consumer.on(consumer.events.REBALANCING, letGo)
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    letGo()
    tell(name, 'trouble', { text: String(payload.error) })
  })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    letGo()
    share = payload.memberAssignment[orders.topic] || []
    tell(name, 'assigned', { partitions: share })
  })
  return letGo
}

async function takeBatch(name, { batch, resolveOffset, heartbeat, isStale, commitOffsetsIfNecessary }) {
  if (isStale()) return
  const records = batch.messages.map((m) => [Number(m.offset), m.value.toString()])
  tell(name, 'records', { partition: batch.partition, records })
  const last = batch.messages.at(-1).offset
  resolveOffset(last)
  const position = { partition: batch.partition, offset: String(BigInt(last) + 1n), metadata: orders.metadata }
  // Not consumer.commitOffsets: its error hides that the member is unknown, and the consumer would not join again.
  await commitOffsetsIfNecessary({ topics: [{ topic: batch.topic, partitions: [position] }] })
  tell(name, 'committed', { positions: { [batch.partition]: Number(position.offset) } })
  await heartbeat()
}

async function join(name) {
  const kafka = new Kafka({
    clientId: name,
    brokers: [orders.bootstrap],
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 100, maxRetryTime: 500, retries: 100 },
  })
  const consumer = kafka.consumer({
    groupId: orders.group,
    sessionTimeout: orders.session_ms,
    heartbeatInterval: orders.heartbeat_ms,
    rebalanceTimeout: 10000,
    maxWaitTimeInMs: 100,
  })
  const letGo = reportShare(consumer, name)
  await consumer.connect()
  await consumer.subscribe({ topics: [orders.topic], fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: (payload) => takeBatch(name, payload),
  })
  return async () => {
    await consumer.stop()
    letGo()
    await consumer.disconnect()
    tell(name, 'left')
  }
}

live(join, (error) => tell('', 'trouble', { text: String(error.stack) }))
