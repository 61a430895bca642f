"use strict";
// The questions of a run: a virtual list, filters, and one question opened. Texts come from datasets,
// systems and models: they are only ever set as text, never parsed as HTML.
(() => {
  const ROW = 62, BEFORE = 8, FIRST_HITS = 10, LONG = 900;
  const FIELDS = ["id", "scenario", "checkpoint", "category", "difficulty", "text", "reference", "expects",
    "now", "session", "status", "error", "failure", "found", "metrics", "evidence", "hits", "scores", "kinds",
    "special", "returned", "pool", "answer", "verdict"];
  const TEXTS = 14;
  const MARKS = { found: "●", partly: "◐", missed: "○", "": "–" };
  const FOUND = { found: "all evidence found", partly: "part of the evidence found", missed: "no evidence found", "": "not measured" };
  const KINDS = { r: ["evidence", "found"], c: ["its text carries evidence", "found"], l: ["evidence only claimed", "partly"],
    w: ["not evidence", "neutral"], u: ["no labels", "neutral"] };
  const RUBRIC = ["correctness (of 3)", "completeness (of 2)", "no hallucination (of 1)"];
  // Characters that are not seen or that turn the direction of writing.
  const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff]|\udb40[\udc00-\udc7f]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
  const $ = (id) => document.getElementById(id);
  const number = (value, digits = 3) => value === null || value === undefined ? "–" : value.toFixed(digits);
  const minutes = (time) => time.slice(0, 16).replace("T", " ");
  const thousands = (value) => value.toLocaleString("en-US");

  /** Add a text to an element; unseen characters are shown as escapes. */
  function put(to, text) {
    let rest = text;
    for (let at = rest.search(UNSEEN); at >= 0; at = rest.search(UNSEEN)) {
      const size = rest.charCodeAt(at) === 0xdb40 ? 2 : 1;
      if (at) to.append(rest.slice(0, at));
      const shown = make("span", "esc");
      shown.textContent = `\\u${rest.codePointAt(at).toString(16).padStart(4, "0")}`;
      to.append(shown);
      rest = rest.slice(at + size);
    }
    if (rest) to.append(rest);
    return to;
  }
  function make(tag, kind = "", text = null) {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    return text === null ? made : put(made, text);
  }
  function button(text, act, kind = "") {
    const made = make("button", kind, text);
    made.type = "button";
    made.addEventListener("click", act);
    return made;
  }

  async function unpack() {
    if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old to unpack them");
    const source = atob($("data").textContent.trim());
    const bytes = new Uint8Array(source.length);
    for (let i = 0; i < source.length; i++) bytes[i] = source.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  let data, questions = [], shown = [], active = 0, open = -1, searched = null;
  const filters = { search: "", category: "", checkpoint: "", status: "", result: "", answer: "", failure: "", sort: "" };
  const list = $("list"), inner = $("rows"), detail = $("detail"), live = new Map();

  function read(row) {
    const one = {};
    FIELDS.forEach((name, place) => { one[name] = place < TEXTS ? data.texts[row[place]] : row[place]; });
    return one;
  }
  const categoryName = (key) => data.categoryNames[key] ? `${key} ${data.categoryNames[key]}` : key;
  // A judge that passed no exam accepts or rejects; whether that is right is not known.
  const graded = (one) => !one.verdict ? "" : !one.verdict[0] ? "unjudged" : data.withheld ? (one.verdict[0][1] ? "accepted" : "rejected") : one.verdict[0][1] ? "right" : "wrong";
  const isSecret = () => Boolean(data.withheld && (filters.answer || filters.failure));
  const firstRank = (one) => Math.min(...one.evidence.map(([, rank]) => rank || 1e9), 1e9);

  // Filters, sort and search
  const TESTS = {
    category: (one, value) => one.category === value,
    checkpoint: (one, value) => one.checkpoint === value,
    status: (one, value) => one.status === value,
    result: (one, value) => (one.found || "none") === value,
    answer: (one, value) => graded(one) === value,
    failure: (one, value) => one.failure === value,
  };
  const SORTS = {
    id: (a, b) => a.id.localeCompare(b.id, "en", { numeric: true }),
    worst: (a, b) => value(a) - value(b),
    best: (a, b) => value(b) - value(a),
    rank: (a, b) => firstRank(b) - firstRank(a),
    slow: (a, b) => total(b) - total(a),
  };
  const value = (one) => one.verdict && one.verdict[0] ? one.verdict[0][0] : one.metrics.length ? one.metrics[data.main] ?? 2 : 2;
  const total = (one) => one.ms.reduce((sum, ms) => sum + (ms || 0), 0);
  function words(one) {
    const said = one.answer ? data.texts[one.answer[1]] : "";
    const ids = one.evidence.map(([memory]) => data.memories[memory][0]).join(" ");
    return [one.id, one.scenario, one.text, one.reference, said, one.error, ids].join("\n").toLowerCase();
  }
  function choose() {
    const tests = Object.entries(TESTS).filter(([name]) => filters[name]);
    const wanted = filters.search.toLowerCase().split(/\s+/).filter(Boolean);
    if (wanted.length && !searched) searched = questions.map(words);
    shown = questions.filter((one, place) => tests.every(([name, test]) => test(one, filters[name]))
      && wanted.every((word) => searched[place].includes(word)));
    if (SORTS[filters.sort]) shown.sort(SORTS[filters.sort]);
    active = Math.max(0, shown.indexOf(questions[open]));
    // The share of accepted answers is the accuracy that is withheld.
    $("count").textContent = isSecret() ? `Some of ${thousands(questions.length)} questions. How many is ${data.withheld}.`
      : `${thousands(shown.length)} of ${thousands(questions.length)} questions`;
    $("clear").hidden = !Object.values(filters).some(Boolean);
    inner.style.height = `${shown.length * ROW}px`;
    for (const row of live.values()) row.remove();
    live.clear();
    list.scrollTop = Math.max(0, (active - 2) * ROW);
    $("none").hidden = shown.length > 0;
    draw();
  }

  // The virtual list
  let waiting = false;
  function draw() {
    waiting = false;
    const from = Math.max(0, Math.floor(list.scrollTop / ROW) - BEFORE);
    const to = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + BEFORE);
    for (const [place, row] of live) {
      if ((place < from || place >= to) && place !== active) { row.remove(); live.delete(place); }
    }
    for (let place = from; place < to; place++) if (!live.has(place)) add(place);
    if (shown.length && !live.has(active)) add(active);
    for (const [place, row] of live) {
      row.classList.toggle("active", place === active);
      row.setAttribute("aria-selected", String(place === active));
    }
    if (shown.length) list.setAttribute("aria-activedescendant", `row-${active}`);
    else list.removeAttribute("aria-activedescendant");
  }
  function add(place) {
    const one = shown[place], row = make("div", "row");
    row.id = `row-${place}`;
    row.setAttribute("role", "option");
    row.setAttribute("aria-setsize", isSecret() ? -1 : shown.length);
    row.setAttribute("aria-posinset", place + 1);
    row.style.transform = `translateY(${place * ROW}px)`;
    const mark = make("span", `mark ${one.found || "neutral"}`, MARKS[one.found]);
    mark.setAttribute("aria-hidden", "true");
    const state = make("span", "hidden", `${FOUND[one.found]}: `);
    const text = make("span", "text");
    text.append(state);
    put(text, one.text.slice(0, 300));
    row.append(mark, text, make("span", "meta", about(one)));
    row.addEventListener("click", () => { active = place; show(shown[place]); draw(); });
    live.set(place, row);
    inner.append(row);
  }
  function about(one) {
    const parts = [categoryName(one.category), one.id, one.status === "answered" ? "" : one.status];
    if (graded(one)) parts.unshift(one.verdict[0] ? `answer ${graded(one)} ${number(one.verdict[0][0], 2)}` : "unjudged");
    if (one.checkpoint) parts.unshift(one.checkpoint);
    if (one.metrics.length) parts.push(`${data.metrics[data.main]} ${number(one.metrics[data.main], 2)}`);
    return parts.filter(Boolean).join(" · ").slice(0, 300);
  }
  function move(to) {
    if (!shown.length) return;
    active = Math.min(Math.max(to, 0), shown.length - 1);
    const top = active * ROW;
    if (top < list.scrollTop) list.scrollTop = top;
    if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
    draw();
  }
  list.addEventListener("scroll", () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } }, { passive: true });
  list.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(list.clientHeight / ROW) - 1);
    const to = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: shown.length - 1 }[event.key];
    if (to !== undefined) { event.preventDefault(); move(to); }
    else if ((event.key === "Enter" || event.key === " ") && shown.length) { event.preventDefault(); show(shown[active]); }
  });

  // One question
  function show(one, { focus = true } = {}) {
    open = questions.indexOf(one);
    detail.replaceChildren(...parts(one));
    detail.hidden = false;
    $("browser").classList.add("open");
    detail.scrollTop = 0;
    remember();
    if (focus) $("detail-title").focus({ preventScroll: false });
  }
  function close() {
    if (detail.hidden) return;
    detail.hidden = true;
    open = -1;
    $("browser").classList.remove("open");
    remember();
    draw();
    list.focus();
  }
  function step(by) { move(active + by); if (shown.length) show(shown[active]); }

  function facts(pairs) {
    const made = make("dl", "facts");
    for (const [name, text] of pairs) if (text !== "" && text !== null) made.append(make("dt", "", name), make("dd", "", String(text)));
    return made;
  }
  function said(text, kind = "words") {
    const made = make("div", kind);
    if (text.length <= LONG) return put(made, text);
    put(made, `${text.slice(0, LONG)}… `);
    made.append(button(`Show all ${thousands(text.length)} characters`, () => made.replaceChildren(...put(make("div"), text).childNodes), "link"));
    return made;
  }
  function titled(title, ...nodes) { return [make("h4", "", title), ...nodes]; }

  function parts(one) {
    const title = make("h3", "", one.text.slice(0, LONG) || one.id);
    title.id = "detail-title";
    title.tabIndex = -1;
    const link = make("a", "id", one.id);
    link.href = `#${address(one)}`;
    link.title = "A link to this question";
    const buttons = make("span");
    buttons.append(button("Previous", () => step(-1)), " ", button("Next", () => step(1)), " ", button("Close", close));
    const top = make("div", "bar-row");
    top.append(link, buttons);
    const state = make("p", one.found || "neutral", `${MARKS[one.found]} ${FOUND[one.found]}`);
    if (one.found && data.k) state.append(` in the first ${data.k}`);
    const metrics = one.metrics.map((each, place) => each === null ? "" : `${data.metrics[place]} ${number(each)}`).filter(Boolean).join(" · ");
    const times = ["recall", "answer", "judge"].map((name, place) => one.ms[place] === null ? "" : `${name} ${number(one.ms[place], 1)} ms`).filter(Boolean).join(" · ");
    const nodes = [top, title];
    if (one.text.length > LONG) nodes.push(said(one.text));
    nodes.push(state, facts([["category", categoryName(one.category)], ["conversation", one.scenario], ["checkpoint", one.checkpoint],
      ["difficulty", one.difficulty], ["asked", [minutes(one.now), one.session].filter(Boolean).join(" · ")], ["expects", one.expects === "answer" ? "" : one.expects], ["status", one.status],
      ["lost at", one.failure], ["metrics", metrics], ["time", times]]));
    if (one.error) nodes.push(...titled("Error", said(one.error)));
    if (one.reference) nodes.push(...titled("Reference answer", said(one.reference)));
    if (one.answer) nodes.push(...answer(one));
    if (one.verdict) nodes.push(...verdict(one.verdict));
    nodes.push(...evidence(one), ...recalled(one));
    return nodes;
  }
  function answer(one) {
    const [status, text, seen, sources] = one.answer;
    const name = data.texts[status];
    const notes = [name === "answered" ? "" : name, seen === null ? "" : `the reader was shown ${seen} hits`,
      sources.length ? `made from ${sources.map((id) => data.texts[id]).join(", ")}` : ""].filter(Boolean).join("; ");
    return titled("Answer", said(data.texts[text] || "(no text)"), ...(notes ? [make("p", "neutral", notes)] : []));
  }
  function verdict([final, primary, error]) {
    const nodes = [];
    const add = (title, mark) => nodes.push(...titled(`${title}: ${mark[1] ? "right" : "wrong"}, ${number(mark[0])}`,
      facts([...mark[2].map((each, place) => [RUBRIC[place], each]), ...mark[4].map(([judge, vote]) => [data.texts[judge], number(vote)])]),
      ...(data.texts[mark[3]] ? [said(data.texts[mark[3]])] : [make("p", "neutral", "The judge gave no reason.")])));
    if (primary) add("First verdict", primary);
    if (final) add(primary ? "Verdict after the appeal" : "Verdict", final);
    else nodes.push(...titled("Verdict: unjudged", said(data.texts[error] || "(no reason)")));
    return nodes;
  }
  function memoryText(place) {
    const [, text, left, at, speaker] = data.memories[place];
    if (text === undefined) return [];
    const about = [minutes(data.texts[at]), data.texts[speaker]].filter(Boolean).join(" · ");
    const nodes = about ? [make("span", "id", about)] : [];
    const shown = said(data.texts[text]);
    if (left) shown.append(make("span", "neutral", ` … ${thousands(left)} characters more in the dataset`));
    return [...nodes, shown];
  }
  function evidence(one) {
    if (!one.evidence.length) return titled("Evidence", make("p", "neutral", "No memory contains the answer."));
    const items = make("ul", "hits");
    for (const [memory, rank] of one.evidence) {
      const item = make("li"), top = make("div", "top");
      const [about, ...text] = withAbout(memory);
      top.append(make("span", `badge ${rank ? "found" : "missed"}`, rank ? `rank ${rank}` : "not recalled"), make("span", "id", data.memories[memory][0]), about);
      item.append(top, ...text);
      items.append(item);
    }
    return titled("Evidence", items, ...noTexts());
  }
  function withAbout(memory) {
    const nodes = memoryText(memory);
    return nodes.length && nodes[0].className === "id" ? nodes : ["", ...nodes];
  }
  const noTexts = () => data.hasTexts ? [] : [make("p", "neutral", "The texts of memories are not in this page: the dataset was not found when it was written.")];
  function recalled(one) {
    if (!one.hits.length) return titled("Recalled", make("p", "neutral", "Nothing was recalled."));
    const items = make("ol", "hits");
    const add = (from, to) => { for (let place = from; place < to; place++) items.append(hit(one, place)); };
    add(0, Math.min(FIRST_HITS, one.hits.length));
    const nodes = [items];
    if (one.hits.length > FIRST_HITS) {
      const more = button(`Show all ${one.hits.length} hits`, () => { add(FIRST_HITS, one.hits.length); more.remove(); const next = items.children[FIRST_HITS]; next.tabIndex = -1; next.focus(); });
      nodes.push(more);
    }
    const left = one.returned - one.hits.length;
    if (left > 0) nodes.push(make("p", "neutral", `${thousands(left)} more hits are in raw_retrievals.jsonl.`));
    const pool = one.pool ? ` of ${thousands(one.pool)} memories` : "";
    return titled(`Recalled: ${thousands(one.returned)}${pool}`, ...nodes, ...noTexts());
  }
  function hit(one, place) {
    const memory = one.hits[place], special = one.special[place];
    const item = make("li"), top = make("div", "top");
    const [label, kind] = KINDS[one.kinds[place]];
    const score = one.scores.length ? one.scores[place] : null;
    const [about, ...text] = withAbout(memory);
    top.append(make("span", "rank", `${place + 1}.`), make("span", `badge ${kind}`, label));
    if (score !== null) top.append(make("span", "score", `score ${Number(score.toPrecision(4))}`));
    top.append(make("span", "id", data.memories[memory][0]), about);
    item.append(top);
    if (!special) { item.append(...text); return item; }
    const [own, sources, places, counted, claimed, repeated] = special;
    const names = (ids) => ids.map((id) => data.texts[id]).join(", ");
    const notes = [repeated ? "returned before: removed before scoring" : "", sources.length ? `made from ${names(sources)}` : "",
      places > 1 ? `takes ${places} places` : "", counted.length ? `counts for ${names(counted)}` : "",
      claimed.length ? `claims ${names(claimed)}, and its text does not say it` : ""].filter(Boolean).join("; ");
    if (notes) item.append(make("div", "neutral", notes));
    item.append(...(own === null ? text : [said(data.texts[own])]));
    return item;
  }

  // The address: filters and the open question
  function address(one) {
    const about = new URLSearchParams();
    for (const [name, text] of Object.entries(filters)) if (text) about.set(name, text);
    if (one) { about.set("q", one.id); if (one.checkpoint) about.set("at", one.checkpoint); }
    return about.toString();
  }
  function remember() {
    const now = address(questions[open]);
    if (now || location.hash.includes("=")) history.replaceState(null, "", now ? `#${now}` : location.pathname + location.search);
  }
  function follow() {
    if (!location.hash.includes("=")) return;
    const about = new URLSearchParams(location.hash.slice(1));
    for (const name of Object.keys(filters)) { filters[name] = about.get(name) || ""; $(`f-${name}`).value = filters[name]; }
    const wanted = questions.find((one) => one.id === about.get("q") && (!about.get("at") || one.checkpoint === about.get("at")));
    open = wanted ? questions.indexOf(wanted) : -1;
    choose();
    if (wanted) { $("s-questions").scrollIntoView({ behavior: "auto" }); show(wanted); }
    else if (about.get("q")) $("count").textContent = `There is no question ${about.get("q").slice(0, 100)} in this run.`;
  }

  function fill(name, values, label = (value) => value) {
    const select = $(`f-${name}`);
    const found = [...new Set(values)].filter(Boolean);
    if (found.length < 2) select.closest("label").hidden = true;
    for (const one of found) { const option = make("option", "", label(one).slice(0, 80)); option.value = one; select.append(option); }
  }
  function begin() {
    data.main = Math.max(0, data.metrics.indexOf(`recall@${data.k}`));
    questions = data.questions.map((row, place) => ({ ...read(row), ms: [data.recall_ms[place], data.answer_ms[place], data.judge_ms[place]] }));
    data.questions = null;
    fill("category", questions.map((one) => one.category).sort(), categoryName);
    fill("checkpoint", data.checkpoints);
    fill("status", questions.map((one) => one.status).sort());
    fill("result", ["found", "partly", "missed", "none"].filter((kind) => questions.some((one) => (one.found || "none") === kind)), (kind) => FOUND[kind === "none" ? "" : kind]);
    fill("answer", questions.map(graded).sort());
    fill("failure", questions.map((one) => one.failure).sort());
    let typing = 0;
    for (const name of Object.keys(filters)) {
      $(`f-${name}`).addEventListener("input", (event) => {
        filters[name] = event.target.value;
        clearTimeout(typing);
        typing = setTimeout(() => { choose(); remember(); }, name === "search" ? 120 : 0);
      });
    }
    $("clear").addEventListener("click", () => {
      for (const name of Object.keys(filters)) { filters[name] = ""; $(`f-${name}`).value = ""; }
      choose(); remember(); $("f-search").focus();
    });
    document.addEventListener("keydown", (event) => {
      const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); $("f-search").focus(); }
      else if (event.key === "Escape") close();
    });
    addEventListener("hashchange", follow);
    addEventListener("resize", draw);
    $("loading").hidden = true;
    $("loaded").hidden = false;
    choose();
    follow();
    document.documentElement.dataset.ready = "yes";
  }

  // The heatmap
  function heatmap(table) {
    const cells = [...table.tBodies[0].rows].map((row) => [...row.cells].slice(1));
    const labels = [...table.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent);
    let at = null;
    table.setAttribute("role", "grid");
    const tell = (row, column) => {
      const cell = cells[row][column], key = cell.parentNode.dataset.category;
      const readout = $("readout"), name = cell.parentNode.cells[0].textContent;
      readout.replaceChildren(make("b", "", `${name}, ${labels[column]}: ${cell.textContent}`), make("span", "", ` · ${cell.dataset.about} `));
      if (key && data) readout.append(button("Show these questions", () => {
        Object.assign(filters, { category: key, checkpoint: labels[column] });
        for (const each of ["category", "checkpoint"]) $(`f-${each}`).value = filters[each];
        choose(); remember(); $("s-questions").scrollIntoView(); list.focus({ preventScroll: true });
      }, "link"));
    };
    const go = (row, column) => {
      if (!cells[row] || !cells[row][column]) return;
      if (at) cells[at[0]][at[1]].tabIndex = -1;
      at = [row, column];
      cells[row][column].tabIndex = 0;
    };
    cells.forEach((row, r) => row.forEach((cell, c) => {
      cell.setAttribute("role", "gridcell");
      cell.addEventListener("mouseenter", () => tell(r, c));
      cell.addEventListener("focus", () => { go(r, c); tell(r, c); });
      cell.addEventListener("click", () => cell.focus());
      cell.tabIndex = -1;
    }));
    table.addEventListener("keydown", (event) => {
      const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!by || !at) return;
      event.preventDefault();
      const row = at[0] + by[0], column = at[1] + by[1];
      if (cells[row] && cells[row][column]) { go(row, column); cells[row][column].focus(); }
    });
    go(0, 0);
  }

  for (const table of document.querySelectorAll("table.heat")) heatmap(table);
  unpack().then((found) => { data = found; begin(); }).catch((error) => {
    $("loading").textContent = `The questions cannot be shown: ${error.message}. questions.jsonl beside this page has them.`;
  });
})();
