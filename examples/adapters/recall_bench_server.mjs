// A server for Recall Bench's gRPC service in JavaScript: a toy memory that answers with the line
// that shares most words with the question.
//
//   npm install @grpc/grpc-js @grpc/proto-loader
//   node recall_bench_server.mjs recall_bench.proto 50052
//   mnemoscope run personas --data ./personas --system recall-bench:127.0.0.1:50052 \
//     --reader system --workers 1
//
// Put your own system where `memory` is used.

import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

// Not `import`: require also looks where NODE_PATH says.
const require = createRequire(import.meta.url);
const grpc = require("@grpc/grpc-js");
const protoLoader = require("@grpc/proto-loader");

const shipped = "../../src/mnemoscope/connectors/grpc/protos/recall_bench.proto";
const proto = process.argv[2] ?? fileURLToPath(new URL(shipped, import.meta.url));
const port = process.argv[3] ?? "50052";
const { recall } = grpc.loadPackageDefinition(protoLoader.loadSync(proto, { keepCase: true }));

const words = (text) => new Set(text.toLowerCase().match(/[a-z0-9]+/g) ?? []);
let memory = [];

const methods = {
  Healthcheck: () => ({ name: "shared-words-node", ready: true }),
  Setup: () => {
    memory = [];
  },
  IngestDay: ({ day_number, content, metadata }) => {
    for (const line of content.split("\n").filter((text) => text && !text.startsWith("#"))) {
      memory.push({ line, words: words(line), day: day_number, date: metadata?.date });
    }
  },
  FinalizeIngestion: () => {}, // build indexes here; it is called at every checkpoint
  Query: ({ question }) => {
    const asked = [...words(question)];
    const shared = ({ words }) => asked.filter((word) => words.has(word)).length;
    const best = memory.reduce((one, other) => (shared(other) > shared(one) ? other : one), {
      line: "No evidence found.",
      words: new Set(),
    });
    return { answer: best.line };
  },
  Teardown: () => {
    memory = [];
  },
};

const server = new grpc.Server({ "grpc.max_receive_message_length": -1 });
const handlers = Object.entries(methods).map(([name, method]) => [
  name,
  async (call, reply) => {
    try {
      reply(null, (await method(call.request)) ?? {});
    } catch (error) {
      reply({ code: grpc.status.INTERNAL, details: String(error) });
    }
  },
]);
server.addService(recall.bench.MemoryBenchService.service, Object.fromEntries(handlers));
server.bindAsync(`127.0.0.1:${port}`, grpc.ServerCredentials.createInsecure(), (error, bound) => {
  if (error) throw error;
  console.log(`serving on 127.0.0.1:${bound}`);
});
