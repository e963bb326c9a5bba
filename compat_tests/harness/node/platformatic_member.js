// Members by @platformatic/kafka. The words in and out are described in compat_tests/harness/__init__.py.
'use strict'

const { Consumer, consumerGroupChannel } = require('@platformatic/kafka')
const { orders, tell, live } = require('./member.js')

// What the broker said is in errors within errors.
const told = (error) => [error.apiId, error.message, ...(error.errors || []).map(told)].filter(Boolean).join(': ')
const complain = (name) => (error) => tell(name, 'trouble', { text: told(error) })

// It announces a new share only once it has taken it, or not at all: the property that holds it is watched.
function reportShare(consumer, name) {
  let kept = null
  let share = []
  const become = (next, whole) => {
    const gone = whole ? share : share.filter((partition) => !next.includes(partition))
    const fresh = whole ? next : next.filter((partition) => !share.includes(partition))
    share = next
    if (gone.length > 0) tell(name, 'revoked', { partitions: gone })
    if (fresh.length > 0) tell(name, 'assigned', { partitions: fresh })
  }
  const letGo = () => become([], true)
  Object.defineProperty(consumer, 'assignments', {
    get: () => kept,
    set: (assignments) => {
      kept = assignments
      const mine = (assignments || []).find(({ topic }) => topic === orders.topic)
      become(mine ? mine.partitions : [], orders.protocol === 'classic')
    },
  })
  // It has no event for every reason to join again; its diagnostics do.
  const start = ({ client, operation }) => {
    if (client === consumer && operation === 'joinGroup') letGo()
  }
  consumerGroupChannel.subscribe({ start })
  return letGo
}

// What has come in one turn of the loop is reported and committed together.
function reportRecords(consumer, stream, name) {
  let waiting = new Map()
  let working = Promise.resolve()
  const flush = async () => {
    const seen = waiting
    waiting = new Map()
    for (const [partition, records] of seen) tell(name, 'records', { partition, records })
    const positions = [...seen].map(([partition, records]) => [partition, records.at(-1)[0] + 1])
    const offsets = positions.map(([partition, offset]) => ({
      topic: orders.topic, partition, offset: BigInt(offset), leaderEpoch: 0,
    }))
    try {
      await consumer.commit({ offsets })
      tell(name, 'committed', { positions: Object.fromEntries(positions) })
    } catch (error) {
      complain(name)(error)
    }
  }
  stream.on('data', ({ partition, offset, value }) => {
    if (waiting.size === 0) setImmediate(() => { working = working.then(flush) })
    if (!waiting.has(partition)) waiting.set(partition, [])
    waiting.get(partition).push([Number(offset), value.toString()])
  })
  return () => working
}

async function join(name) {
  const classic = {
    sessionTimeout: orders.session_ms,
    heartbeatInterval: orders.heartbeat_ms,
    rebalanceTimeout: Math.max(10000, orders.session_ms), // it refuses less
  }
  const consumer = new Consumer({
    clientId: name,
    groupId: orders.group,
    bootstrapBrokers: [orders.bootstrap],
    groupProtocol: orders.protocol,
    ...(orders.protocol === 'classic' ? classic : {}),
    ...(orders.protocol === 'consumer' && orders.assignor ? { groupRemoteAssignor: orders.assignor } : {}),
    ...(orders.static ? { groupInstanceId: name } : {}),
    maxWaitTime: 100,
    timeout: 15000,
    retries: 100,
    retryDelay: 200,
  })
  const letGo = reportShare(consumer, name)
  consumer.on('error', complain(name))
  consumer.on('consumer:heartbeat:error', ({ error }) => complain(name)(error))
  const stream = await consumer.consume({
    topics: [orders.topic], mode: 'committed', fallbackMode: 'earliest', autocommit: false,
  })
  stream.on('error', complain(name))
  const settled = reportRecords(consumer, stream, name)
  return async () => {
    await stream.close()
    await settled()
    letGo()
    await consumer.close(true)
    tell(name, 'left')
  }
}

live(join, complain(''))
