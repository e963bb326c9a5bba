// What the Node programs of compat_tests/features share: lines in, lines out.
"use strict";

const readline = require("node:readline");

// Each word is a function of `words`; `told(error)` is what a library's refusal says.
async function serve(words, told) {
  for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const task = JSON.parse(line);
    let answer;
    try {
      answer = { ok: (await words[task.do](task)) || {} };
    } catch (error) {
      answer = { error: told(error) };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
  process.exit(0);
}

module.exports = { serve };
