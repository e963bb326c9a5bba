// What the Node members share: words in, words out, as described in compat_tests/harness/__init__.py.
'use strict'

const readline = require('node:readline')

const orders = JSON.parse(process.argv[2])

function tell(member, event, what = {}) {
  const at = (performance.timeOrigin + performance.now()) / 1000
  process.stdout.write(JSON.stringify({ member, event, at, ...what }) + '\n')
}

async function obey(join) {
  tell('', 'ready')
  const words = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  if (orders.hold) await words.next()
  // Joining takes as long as the group needs, and orders to leave must be heard meanwhile.
  const joined = new Map(orders.members.map((name) => [name, join(name)]))
  const leave = async (name) => {
    const leaving = joined.get(name)
    joined.delete(name)
    if (leaving) await (await leaving)()
  }
  const going = []
  for await (const line of words) {
    if (line.startsWith('leave ')) going.push(leave(line.slice(6)))
  }
  await Promise.all([...going, ...[...joined.keys()].map(leave)])
}

// `join(name)` makes a member, and gives how it leaves; `complain(error)` tells of what ends the program.
function live(join, complain) {
  obey(join).then(
    () => process.exit(0),
    (error) => {
      complain(error)
      process.exit(1)
    },
  )
}

module.exports = { orders, tell, live }
