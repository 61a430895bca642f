// An adapter for the stdio connector, in JavaScript: a toy memory that ranks by shared words.
//
//   mnemoscope run locomo --system "stdio:node examples/adapters/javascript_adapter.mjs" --out runs/toy
//
// It needs only Node. Put your own system where `verbs` is.

import { createInterface } from "node:readline";

// stdout is reserved for the protocol; log messages go to stderr, and from there to the run's log.
console.log = console.info = console.debug = console.error;

const words = (text) => new Set(text.toLowerCase().match(/[a-z0-9]+/g) ?? []);
let held = [];

const verbs = {
  reset: () => {
    held = [];
  },
  remember: ({ memories }) => {
    const rejected = {};
    for (const { id, text } of memories) {
      const found = words(text);
      if (found.size) held.push({ id, words: found });
      else rejected[id] = "no words in it";
    }
    return { rejected };
  },
  recall: ({ query, k }) => {
    const asked = [...words(query.text)];
    return [...held]
      .reverse()
      .map((memory) => ({ id: memory.id, score: asked.filter((w) => memory.words.has(w)).length }))
      .sort((one, other) => other.score - one.score)
      .slice(0, k);
  },
  forget: ({ memories }) => {
    const gone = new Set(memories.map((memory) => memory.id));
    held = held.filter((memory) => !gone.has(memory.id));
  },
  stats: () => ({ memories_held: held.length }),
};

const hello = () => ({
  name: "shared-words-js",
  version: "1.0",
  methods: Object.keys(verbs),
  identity: { node: process.versions.node }, // everything that determines the results
});

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { id, method, params } = JSON.parse(line);
  const reply = { jsonrpc: "2.0", id };
  try {
    const verb = method === "hello" ? hello : verbs[method];
    if (!verb) throw new Error(`there is no ${method}`);
    reply.result = (await verb(params)) ?? null;
  } catch (error) {
    reply.error = { code: -32000, message: String(error) };
  }
  process.stdout.write(JSON.stringify(reply) + "\n");
}
