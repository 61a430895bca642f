// Filters, lists that open, the slider and the progress of a run. All figures come from the server,
// and every text that the server sends as JSON is inserted as text.
"use strict";

const POLL_MS = 2000;
const TYPING_MS = 120;

function filterRows(input) {
  const items = document.querySelectorAll(input.dataset.filter);
  const count = document.getElementById("filter-count");
  let timer = 0;
  const apply = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const item of items) {
      item.hidden = !words.every((word) => item.dataset.text.includes(word));
      shown += item.hidden ? 0 : 1;
    }
    count.textContent = words.length ? `${shown} of ${items.length}` : "";
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(apply, TYPING_MS);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault(); // do not send the form around it
  });
  if (input.value) apply();
}

// The server escapes what it sends as HTML, and the policy of the page allows no inline script.
async function loadInto(target, address) {
  const reply = await fetch(address);
  const text = await reply.text();
  if (!reply.ok) throw new Error(`the server answered ${reply.status}`);
  target.innerHTML = text;
}

function loadOnOpen(details) {
  details.addEventListener("toggle", async () => {
    if (!details.open || details.dataset.loaded) return;
    details.dataset.loaded = "1";
    const body = document.createElement("div");
    body.textContent = "Loading …";
    details.append(body);
    try {
      await loadInto(body, details.dataset.src);
    } catch (error) {
      body.textContent = `Not loaded: ${error.message}`;
      delete details.dataset.loaded;
    }
  });
}

function slide(input) {
  const labels = input.dataset.labels.split("\n");
  const shown = document.getElementById("at-label");
  const panel = document.getElementById("panel");
  let timer = 0;
  let wanted = input.value;
  const mark = (at) => {
    for (const cell of document.querySelectorAll(".heat .here")) cell.classList.remove("here");
    for (const row of document.querySelectorAll(".heat tr")) {
      row.children[at + 1]?.classList.add("here");
    }
    reveal();
  };
  // Scroll the heatmap to the chosen column, and not the page.
  const reveal = () => {
    const head = document.querySelector(".heat th.here");
    const frame = head?.closest(".scroll");
    if (frame) frame.scrollLeft = head.offsetLeft - frame.clientWidth / 2;
  };
  const load = async () => {
    const at = wanted;
    try {
      const reply = await fetch(`${input.dataset.src}&at=${at}`);
      const text = await reply.text();
      if (at === wanted && reply.ok) panel.innerHTML = text;
    } catch (error) {
      shown.textContent = `${labels[at]}: not loaded`;
    }
  };
  reveal();
  input.addEventListener("input", () => {
    wanted = input.value;
    shown.textContent = labels[wanted];
    input.setAttribute("aria-valuetext", labels[wanted]);
    mark(Number(wanted));
    clearTimeout(timer);
    timer = setTimeout(load, TYPING_MS);
  });
}

function showProgress(now) {
  const bar = document.getElementById("bar");
  if (now.total) {
    bar.max = now.total;
    bar.value = now.done;
  } else if (now.state === "complete") {
    bar.max = 1;
    bar.value = 1;
  }
  const state = document.querySelector("#state .state");
  state.textContent = now.word;
  state.className = `state ${now.state}`;
  document.getElementById("progress-text").textContent = now.text;
  if (now.state === "complete") return;
  const rows = Object.entries(now.statuses).map(([name, count]) => {
    const row = document.createElement("tr");
    const head = document.createElement("th");
    const cell = document.createElement("td");
    head.scope = "row";
    head.textContent = name;
    cell.className = "num";
    cell.textContent = count.toLocaleString("en");
    row.append(head, cell);
    return row;
  });
  document.querySelector("#live tbody").replaceChildren(...rows);
}

async function watch(live) {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    let now;
    try {
      now = await (await fetch(live.dataset.src)).json();
    } catch {
      document.getElementById("progress-text").textContent = "The viewer does not answer.";
      continue;
    }
    showProgress(now);
    if (now.state !== "running") {
      document.getElementById("announce").textContent = now.text;
      return;
    }
  }
}

for (const input of document.querySelectorAll("input[data-filter]")) filterRows(input);
for (const details of document.querySelectorAll("details[data-src]")) loadOnOpen(details);
const slider = document.getElementById("at");
if (slider) slide(slider);
const live = document.getElementById("live");
if (live?.dataset.src) watch(live);
