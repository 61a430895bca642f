// Runs a JavaScript adapter of Recall Bench behind the stdio connector: node recall_bench_shim.mjs ADAPTER
//
// `hello` names the factory and its config. A memory that `remember` sends is one day. It needs
// only Node; docs/recall-bench.md has the protocol.

import { createInterface } from "node:readline";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";

// Before the adapter is loaded: what it prints goes to stderr, and stdout has only replies.
const reply = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);

const NEEDED = ["setup", "ingestDay", "finalizeIngestion", "query", "teardown"];
const file = process.argv[2];
let adapter;
let isSetUp = false;

async function load({ factory = "", config = {} }) {
  const loaded = await import(pathToFileURL(file).href);
  // A CommonJS module is the default export, and compiled TypeScript has another one inside.
  const whole = loaded.default?.default ?? loaded.default;
  if (!factory) return check(whole, "the default export");
  const make = factory === "default" ? whole : (loaded[factory] ?? loaded.default?.[factory]);
  if (typeof make !== "function") {
    const names = Object.keys(loaded).filter((name) => typeof loaded[name] === "function");
    throw new Error(`no function ${factory} is exported; there is ${names.join(", ") || "none"}`);
  }
  return check(await make(config), `what ${factory} returns`);
}

function check(found, what) {
  if (typeof found === "function") {
    throw new Error(`${what} is a function: write factory=default, or factory=NAME of another one`);
  }
  const asks = typeof found?.queryDetail === "function" ? ["query"] : [];
  const missing = NEEDED.filter((name) => typeof found?.[name] !== "function" && !asks.includes(name));
  if (missing.length) throw new Error(`${what} is no adapter: it has no ${missing.join(", ")}`);
  return found;
}

async function tearDown() {
  if (!isSetUp) return;
  isSetUp = false;
  try {
    await adapter.teardown();
  } catch (error) {
    console.error(`teardown failed: ${error?.message ?? error}`);
  }
}

const verbs = {
  hello: async (params) => {
    adapter ??= await load(params);
    return {
      name: String(adapter.name ?? basename(file)),
      methods: ["reset", "remember", "ready", "answer", "close"],
      identity: { node: process.versions.node },
    };
  },
  reset: async () => {
    await tearDown();
    await adapter.setup();
    isSetUp = true;
  },
  remember: async ({ memories }) => {
    for (const { text, at, metadata } of memories) {
      const about = {
        dayNumber: metadata.day,
        date: (at ?? "").slice(0, 10),
        personaId: metadata.persona ?? "",
        activeArcs: (metadata.active_arcs ?? "").split(",").filter(Boolean),
      };
      await adapter.ingestDay(metadata.day, text, about);
    }
  },
  ready: () => adapter.finalizeIngestion(),
  answer: async ({ query }) => {
    const found = adapter.queryDetail
      ? (await adapter.queryDetail(query.text))?.answer
      : await adapter.query(query.text);
    if (typeof found !== "string") throw new Error(`the answer is ${typeof found}, expected a text`);
    return found;
  },
  close: tearDown,
};

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { id, method, params } = JSON.parse(line);
  const said = { jsonrpc: "2.0", id };
  try {
    const result = await verbs[method](params);
    said.result = ["hello", "answer"].includes(method) ? result : null;
  } catch (error) {
    said.error = { code: -32000, message: String(error?.message ?? error) };
  }
  reply(JSON.stringify(said) + "\n");
}
process.exit(0); // an adapter may have left timers or connections open
