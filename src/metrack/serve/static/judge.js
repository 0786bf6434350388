// Two items side by side. An answer waits in this page until the next one, so that it can be undone.

import { api, ask, element, find, metric, problem } from "/static/common.js";

const WAIT = 10000; // milliseconds in which an answer can be undone
const AHEAD = 5; // pairs that are asked for at a time
const KEYS = { a: 1, n: -1, u: null };
const WORDS = new Map([[1, "alike"], [-1, "not alike"], [null, "unsure"]]);

let queue = [], shown = null, held = null, timer = 0, n_answers = 0, fetching = null;

const judge = () => find("judge").value.trim() || "anonymous";

function face(where, item) {
  const parts = [];
  if (item.image) parts.push(element("img", undefined, { src: item.image, alt: item.text ?? item.id }));
  if (item.text) parts.push(element("p", item.text, { class: "text" }));
  if (!parts.length) {
    parts.push(element("p", item.id));
    const table = element("table");
    item.vector.slice(0, 50).forEach((value, i) => {
      const row = element("tr");
      const name = features?.[i] ?? `feature ${i + 1}`;
      row.append(element("th", name, { scope: "row" }), element("td", String(+value.toPrecision(3))));
      table.append(row);
    });
    parts.push(table);
  }
  where.replaceChildren(...parts);
}

let features = null;

const key = (pair) => [pair.a.id, pair.b.id].sort().join("\u0000");

async function more() {
  const { pairs } = await ask("POST", api("/suggest"), { n: AHEAD, judge: judge() });
  // Not what is shown, waits or was just answered: the server does not know of these yet.
  const known = new Set([shown, held?.pair, ...queue].filter(Boolean).map(key));
  queue.push(...pairs.filter((pair) => !known.has(key(pair))));
}

async function next() {
  if (!queue.length) {
    fetching ??= more().finally(() => { fetching = null; });
    await fetching;
  }
  shown = queue.shift() ?? null;
  if (shown && Math.random() < 0.5) [shown.a, shown.b] = [shown.b, shown.a]; // no side is preferred
  show();
}

function show() {
  for (const id of ["alike", "other", "unsure"]) find(id).disabled = shown === null;
  find("undo").disabled = held === null;
  find("count").textContent = n_answers ? `${n_answers} answered` : "";
  if (shown === null) {
    find("left").replaceChildren(element("p", "All pairs that were suggested are judged. Thank you."));
    find("right").replaceChildren();
    return;
  }
  face(find("left"), shown.a);
  face(find("right"), shown.b);
}

// Sent again until it is there: the server knows it by its id.
async function send(answer) {
  const { pair, y, id, by } = answer;
  const body = { pairs: [{ a: pair.a.id, b: pair.b.id, y, id, judge: by }] };
  for (let wait = 500; ; wait = Math.min(2 * wait, 10000)) {
    try {
      await ask("POST", api("/feedback"), body);
      problem(null);
      return;
    } catch (error) {
      problem(error);
      await new Promise((done) => setTimeout(done, wait));
    }
  }
}

function release() {
  clearTimeout(timer);
  const answer = held;
  held = null;
  find("undo").disabled = true;
  return answer === null ? Promise.resolve() : send(answer);
}

async function answer(y) {
  if (shown === null) return;
  const pair = shown;
  shown = null; // a second key is for the next pair
  release();
  held = { pair, y, id: crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`, by: judge() };
  timer = setTimeout(release, WAIT);
  n_answers += 1;
  find("said").textContent = `You said: ${WORDS.get(y)}.`;
  await attempt(next);
}

function undo() {
  if (held === null) return;
  clearTimeout(timer);
  if (shown) queue.unshift(shown);
  shown = held.pair;
  held = null;
  n_answers -= 1;
  find("said").textContent = "Undone.";
  show();
}

async function attempt(work) {
  try {
    await work();
  } catch (error) {
    problem(error);
  }
}

addEventListener("keydown", (event) => {
  if (event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const pressed = event.key.toLowerCase();
  if (pressed in KEYS) answer(KEYS[pressed]);
  else if (pressed === "z") undo();
  else return;
  event.preventDefault();
});
find("alike").addEventListener("click", () => answer(1));
find("other").addEventListener("click", () => answer(-1));
find("unsure").addEventListener("click", () => answer(null));
find("undo").addEventListener("click", undo);

// Who leaves has answered.
addEventListener("pagehide", () => {
  if (held === null) return;
  const { pair, y, id, by } = held;
  held = null;
  const body = JSON.stringify({ pairs: [{ a: pair.a.id, b: pair.b.id, y, id, judge: by }] });
  fetch(api("/feedback"), { method: "POST", body, keepalive: true, headers: { "content-type": "application/json" } });
});

document.title = `metrack: judge ${metric}`;
find("back").href = `/m/${encodeURIComponent(metric)}`;
find("judge").value = localStorage.getItem("judge") ?? "";
find("judge").addEventListener("change", () => {
  localStorage.setItem("judge", find("judge").value.trim());
  queue = [];
  attempt(next);
});
attempt(async () => {
  features = (await ask("GET", api())).features;
  await next();
});
