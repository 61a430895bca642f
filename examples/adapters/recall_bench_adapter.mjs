// An adapter of Recall Bench, in JavaScript: a toy memory that answers with the sentence that
// shares most words with the question.
//
//   mnemoscope run personas --data histories \
//     --system recall-bench-js:examples/adapters/recall_bench_adapter.mjs,factory=createAdapter
//
// It needs only Node. An adapter that runs in Recall Bench runs here without changes.

const words = (text) => new Set(text.toLowerCase().match(/[a-z0-9]+/g) ?? []);

export function createAdapter({ name = "shared-words", nothing = "No evidence found." } = {}) {
  let days = new Map();
  return {
    name,
    setup: async () => {
      days = new Map();
    },
    ingestDay: async (day, content, metadata) => {
      const sentences = content.split(/(?<=[.?!])\s+|\n+/).filter((line) => !line.startsWith("#"));
      days.set(day, { sentences, date: metadata.date });
    },
    finalizeIngestion: async () => {},
    query: async (question) => {
      const asked = [...words(question)];
      let best = { shared: 0, sentence: nothing };
      for (const { sentences } of days.values()) {
        for (const sentence of sentences) {
          const held = words(sentence);
          const shared = asked.filter((word) => held.has(word)).length;
          if (shared > best.shared) best = { shared, sentence: sentence.trim() };
        }
      }
      return best.sentence;
    },
    teardown: async () => {
      days.clear();
    },
  };
}

export default createAdapter();
