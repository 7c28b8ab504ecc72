// The script of the report: makes the list of sentences, filters and sorts it, and stores decisions.
//
// Every text of the data becomes a text node, so that no text can become an element. The script requests nothing.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const list = byId("list");
  if (!list) {
    return;
  }

  const data = JSON.parse(byId("data").textContent);
  // The order of the values is documented in `page/data.rs`.
  const items = data.items.map(([i, v, o, r, p, n, c, place, content, x, y]) => {
    const source = typeof place === "number" ? data.sources[place] : null;
    const item = { i, v, o, r, p, n, c, x, y, place: source ? source[0] : place };
    return Object.assign(item, source ? { source: source[1], replaced: content } : { segments: content });
  });
  const form = byId("filters");
  const PAGE = 60;
  const STORE = "melm-decisions-" + data.key;
  const WORDS = { accept: "Accepted", reject: "Rejected" };

  // ---------------------------------------------------------------- sentences

  // Returns the segments of an item: its own, or those of its source with some mentions replaced.
  function segmentsOf(item) {
    if (item.segments) {
      return item.segments;
    }
    let mention = 0;
    let next = 0;
    return item.source.map((segment) => {
      if (typeof segment === "string" || item.replaced[next] !== mention++) {
        return segment;
      }
      next += 2;
      return [segment[0], item.replaced[next - 1], segment[1]];
    });
  }

  // Computes what filters and sorting need, once for each item.
  items.forEach((item, at) => {
    const segments = segmentsOf(item);
    const texts = segments.map((one) => (typeof one === "string" ? one : one.slice(1).join(" ")));
    item.at = at;
    item.text = texts.join(" ").toLowerCase();
    item.types = new Set(segments.filter((one) => typeof one !== "string").map((one) => one[0]));
    item.novelty = item.c ? item.n / item.c : 0;
  });

  function make(name, className, ...children) {
    const node = document.createElement(name);
    if (className) {
      node.className = className;
    }
    node.append(...children);
    return node;
  }

  const isolated = (text) => make("bdi", "", text);

  function segmentNode(segment) {
    if (typeof segment === "string") {
      return document.createTextNode(segment);
    }
    const [type, text, old] = segment;
    const parts = old === undefined
      ? [text]
      : [make("del", "", old), " ", make("ins", "", text)];
    if (type < 0) {
      return make("span", "", ...parts);
    }
    return make("mark", "t" + (type % 12), ...parts, "\u202f", make("span", "type", data.types[type]));
  }

  function objectionNode(one) {
    if (typeof one[2] === "number") {
      const [text, type, votes, panel] = one;
      return make("li", "", "panel: ", isolated(text), ` is ${type} for ${votes} of ${panel}`);
    }
    const [token, wanted, found, p] = one;
    return make("li", "", "judge: ", isolated(token), ` is ${found}, not ${wanted} (p ${p.toFixed(2)})`);
  }

  function metaNode(item) {
    const [, verdict] = data.verdicts[item.v];
    const [origin, description] = data.origins[item.o];
    const parts = [
      make("span", "badge", verdict),
      make("span", "place", item.place),
      make("span", "", (origin === "text" ? "pass " : "round ") + item.r),
      make("span", "", description),
    ];
    if (item.p !== null) {
      parts.push(make("span", "", "p " + item.p.toFixed(3)));
    }
    parts.push(make("span", "", "novelty " + Math.round(100 * item.novelty) + " %"));
    return make("p", "meta", ...parts.flatMap((part) => [part, " "]));
  }

  function buttonNode(item, decision, title, key) {
    const button = make("button", decision, title);
    button.type = "button";
    button.dataset.decision = decision;
    button.setAttribute("aria-keyshortcuts", key);
    button.addEventListener("click", () => decide(item, decisions.get(item.i) === decision ? null : decision));
    return button;
  }

  function rowNode(item) {
    const row = make("li", "sentence " + data.verdicts[item.v][2]);
    row.id = "s-" + item.i;
    row.tabIndex = -1;
    row.dataset.at = item.at;
    const text = make("p", "text");
    text.dir = "auto";
    segmentsOf(item).forEach((segment, at) => text.append(at ? " " : "", segmentNode(segment)));
    row.append(metaNode(item), text);
    if (item.x) {
      const objections = make("ul", "objections", ...item.x.map(objectionNode));
      if (item.y) {
        objections.append(make("li", "", "and " + item.y + " more"));
      }
      row.append(objections);
    }
    row.append(make("p", "actions", buttonNode(item, "accept", "Accept", "a"), " ", buttonNode(item, "reject", "Reject", "r")));
    showDecision(row, item);
    return row;
  }

  // ---------------------------------------------------------------- filters

  let matching = [];
  let nShown = 0;
  const number = (n) => n.toLocaleString("en");

  function matches(item, wanted) {
    return (wanted.type < 0 || item.types.has(wanted.type))
      && (!wanted.origin || data.origins[item.o][0] === wanted.origin)
      && (!wanted.verdict || data.verdicts[item.v][0] === wanted.verdict)
      && (!wanted.round || String(item.r) === wanted.round)
      && (!wanted.decision || (decisions.get(item.i) || "none") === wanted.decision)
      && (!wanted.text || item.text.includes(wanted.text));
  }

  // Items without a probability come last.
  const compare = {
    improbable: (a, b) => (a.p ?? 2) - (b.p ?? 2),
    probable: (a, b) => (b.p ?? -1) - (a.p ?? -1),
    novel: (a, b) => b.novelty - a.novelty || b.n - a.n,
  };

  function apply() {
    const value = (id) => byId(id).value;
    const wanted = {
      type: value("f-type") ? data.types.indexOf(value("f-type")) : -1,
      origin: value("f-origin"),
      verdict: value("f-verdict"),
      round: value("f-round"),
      decision: value("f-decision"),
      text: value("f-text").trim().toLowerCase(),
    };
    matching = items.filter((item) => matches(item, wanted));
    const order = compare[value("sort")];
    if (order) {
      matching.sort((a, b) => order(a, b) || a.at - b.at);
    }
    list.replaceChildren();
    nShown = 0;
    more();
  }

  function more() {
    const next = matching.slice(nShown, nShown + PAGE);
    list.append(...next.map(rowNode));
    nShown += next.length;
    byId("more").hidden = nShown >= matching.length;
    const rest = nShown < matching.length ? `, the first ${number(nShown)} are listed` : "";
    byId("count").textContent = `${number(matching.length)} of ${number(items.length)} sentences${rest}`;
    if (!list.querySelector("[tabindex='0']") && list.firstElementChild) {
      list.firstElementChild.tabIndex = 0;
    }
  }

  // ---------------------------------------------------------------- the current sentence

  function currentRow() {
    const row = document.activeElement && document.activeElement.closest("#list > li");
    return row || null;
  }

  function focusRow(row) {
    if (!row) {
      return;
    }
    for (const other of list.querySelectorAll("[tabindex='0']")) {
      other.tabIndex = -1;
    }
    row.tabIndex = 0;
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }

  function move(by) {
    const row = currentRow();
    if (!row) {
      focusRow(list.querySelector("[tabindex='0']"));
      return;
    }
    if (by > 0 && !row.nextElementSibling) {
      more();
    }
    focusRow(by > 0 ? row.nextElementSibling : row.previousElementSibling);
  }

  // Shows a sentence in the list, whatever the filters are.
  function openItem(id) {
    const item = items.find((one) => one.i === id);
    if (!item) {
      return;
    }
    // Resetting the form would make the list again later, and the sentence would lose the focus.
    for (const control of form.querySelectorAll("select, input")) {
      control.value = "";
    }
    apply();
    while (nShown <= item.at) {
      more();
    }
    const row = byId("s-" + id);
    focusRow(row);
    row.scrollIntoView({ block: "center" });
  }

  // ---------------------------------------------------------------- decisions

  const decisions = readDecisions();
  // The ids of decided items, the last one at the end.
  const history = [];

  function readDecisions() {
    const known = new Set(items.map((item) => item.i));
    try {
      const stored = Object.entries(JSON.parse(localStorage.getItem(STORE) || "{}"));
      return new Map(stored.filter(([id, decision]) => known.has(id) && WORDS[decision]));
    } catch {
      // Some browsers store nothing for local files. Decisions then last as long as the page.
      return new Map();
    }
  }

  function storeDecisions() {
    try {
      localStorage.setItem(STORE, JSON.stringify(Object.fromEntries(decisions)));
    } catch {
      // As above.
    }
  }

  function showDecision(row, item) {
    const decision = decisions.get(item.i);
    row.classList.toggle("accepted", decision === "accept");
    row.classList.toggle("rejected", decision === "reject");
    for (const button of row.querySelectorAll("[data-decision]")) {
      button.setAttribute("aria-pressed", String(button.dataset.decision === decision));
    }
  }

  // Stores a decision, or removes it if `decision` is null.
  function decide(item, decision) {
    if (decision) {
      decisions.set(item.i, decision);
      history.push(item.i);
    } else {
      decisions.delete(item.i);
    }
    storeDecisions();
    const row = byId("s-" + item.i);
    if (row) {
      showDecision(row, item);
    }
    showTotals(WORDS[decision] || "Undone");
  }

  function showTotals(what) {
    const n = (wanted) => [...decisions.values()].filter((one) => one === wanted).length;
    const totals = `${number(n("accept"))} accepted, ${number(n("reject"))} rejected`;
    byId("decided").textContent = what ? `${what}. ${totals}` : totals;
    byId("download").disabled = decisions.size === 0;
  }

  function decideCurrent(decision) {
    const row = currentRow();
    if (!row) {
      move(1);
      return;
    }
    decide(items[row.dataset.at], decision);
    move(1);
  }

  // Undoes the decision about the current sentence, or the last one if the current sentence has none.
  function undo() {
    const row = currentRow();
    let id = row ? items[row.dataset.at].i : "";
    while (!decisions.has(id) && history.length) {
      id = history.pop();
    }
    if (!decisions.has(id)) {
      return;
    }
    decide(items.find((item) => item.i === id), null);
    focusRow(byId("s-" + id));
  }

  function download() {
    const line = (item) => JSON.stringify({
      id: item.i,
      decision: decisions.get(item.i),
      verdict: data.verdicts[item.v][0],
      place: item.place,
    });
    const lines = items.filter((item) => decisions.has(item.i)).map((item) => line(item) + "\n");
    const link = make("a");
    link.href = URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" }));
    link.download = "decisions.jsonl";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // ---------------------------------------------------------------- events

  const KEYS = {
    j: () => move(1),
    k: () => move(-1),
    a: () => decideCurrent("accept"),
    r: () => decideCurrent("reject"),
    u: undo,
    "/": () => byId("f-text").focus(),
  };

  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, select, textarea");
    if (isTyping || event.ctrlKey || event.altKey || event.metaKey) {
      return;
    }
    const arrows = currentRow() ? { ArrowDown: KEYS.j, ArrowUp: KEYS.k } : {};
    const action = KEYS[event.key] || arrows[event.key];
    if (action) {
      event.preventDefault();
      action();
    }
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-id]");
    if (link) {
      event.preventDefault();
      openItem(link.dataset.id);
    }
  });

  let timer = 0;
  byId("f-text").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(apply, 120);
  });
  form.addEventListener("change", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  byId("more").addEventListener("click", () => {
    const first = nShown;
    more();
    focusRow(list.children[first]);
  });
  byId("download").addEventListener("click", download);

  form.hidden = false;
  byId("status").hidden = false;
  apply();
  showTotals("");
  if (location.hash.startsWith("#s-")) {
    openItem(location.hash.slice(3));
  }
})();
