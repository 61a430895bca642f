// Leads a short life through a server of Recall Bench's service, as its harness does, and prints
// what came back.  node client.mjs PROTO HOST:PORT

import grpc from "@grpc/grpc-js";
import protoLoader from "@grpc/proto-loader";

const [proto, address] = process.argv.slice(2);
const { recall } = grpc.loadPackageDefinition(protoLoader.loadSync(proto));
const client = new recall.bench.MemoryBenchService(address, grpc.credentials.createInsecure());

const call = (method, message = {}) =>
  new Promise((resolve, reject) => {
    const deadline = Date.now() + 30_000;
    client[method](message, { deadline }, (error, reply) => (error ? reject(error) : resolve(reply)));
  });

const days = [
  "# session: principal\n\n### The lighthouse\n\nWe agreed that the lighthouse weighs 101 crates.",
  "# session: principal\n\n### The orchard\n\nWe agreed that the orchard weighs 102 crates.",
];
const ingest = (number) =>
  call("ingestDay", {
    dayNumber: number,
    content: days[number - 1],
    metadata: {
      dayNumber: number,
      date: `2026-01-0${number}`,
      personaId: "tester",
      activeArcs: ["move", "garden"],
    },
  });
const ask = async (question) => (await call("query", { question })).answer;

const said = { health: await call("healthcheck") };
await call("setup");
await ingest(1);
await call("finalizeIngestion");
said.first = await ask("What does the lighthouse weigh?");
await ingest(2);
await call("finalizeIngestion");
said.second = await ask("What does the orchard weigh?");
await call("setup");
await ingest(2);
await call("finalizeIngestion");
said.afresh = await ask("What does the lighthouse weigh?");
await call("teardown");
try {
  await ask("Is anybody there?");
} catch (error) {
  said.late = `${grpc.status[error.code]}: ${error.details}`;
}
console.log(JSON.stringify(said));
client.close();
