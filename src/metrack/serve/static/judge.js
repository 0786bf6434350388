// Pairs to judge. An answer waits in this page until the next one, so that it can be undone.

import { api, ask, element, find, metric, problem } from "/static/common.js";
import { nameFeatures } from "/static/faces.js";
import { showPair } from "/static/pairs.js";
import { part, said } from "/static/progress.js";
import { Queue, bodyOf, newId, sendAnswer } from "/static/queue.js";
import { lookAgain, settle } from "/static/review.js";

const WAIT = 10000; // milliseconds in which an answer can be undone
const KEYS = { a: 1, n: -1, u: null };
const WORDS = new Map([[1, "alike"], [-1, "not alike"], [null, "unsure"]]);

const judge = () => find("judge").value.trim() || "anonymous";
const queue = new Queue(judge);
let shown = null, held = null, timer = 0, n_answers = 0;

async function next() {
  shown = await queue.next(() => [shown, held?.pair]);
  show();
}

function show() {
  for (const id of ["alike", "other", "unsure"]) find(id).disabled = shown === null;
  find("undo").disabled = held === null;
  find("count").textContent = n_answers ? `${n_answers} answered in this session.` : "";
  if (queue.progress !== null) {
    find("progress").value = part(queue.progress);
    find("how-far").textContent = said(queue.progress);
    find("how-far").className = queue.progress.stop ? "enough" : "soft";
  }
  if (shown === null) find("pair").replaceChildren(element("p", "All pairs that were suggested are judged. Thank you.", { class: "panel" }));
  else showPair(find("pair"), shown);
}

async function release() {
  clearTimeout(timer);
  const answer = held;
  held = null;
  find("undo").disabled = true;
  if (answer !== null) await sendAnswer(answer);
}

async function answer(y) {
  if (shown === null) return;
  const pair = shown;
  shown = null; // a second key is for the next pair
  release();
  held = { pair, y, id: newId(), by: judge() };
  timer = setTimeout(release, WAIT);
  n_answers += 1;
  find("said").textContent = `You said: ${WORDS.get(y)}.`;
  await attempt(next);
}

function undo() {
  if (held === null) return;
  clearTimeout(timer);
  if (shown) queue.pairs.unshift(shown);
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

// Which of the three is shown: judging, one's own answers, or disagreements.
async function turn() {
  const what = { "#again": "again", "#settle": "settle" }[location.hash] ?? "judge";
  for (const each of ["judge", "again", "settle"]) {
    if (each === what) find(`tab-${each}`).setAttribute("aria-current", "page");
    else find(`tab-${each}`).removeAttribute("aria-current");
  }
  find("judging").hidden = what !== "judge";
  find("review").hidden = what === "judge";
  if (what !== "judge") await release();
  if (what === "again") await attempt(() => lookAgain(judge()));
  else if (what === "settle") await attempt(() => settle(judge()));
}

addEventListener("keydown", (event) => {
  const elsewhere = event.target instanceof HTMLInputElement || find("judging").hidden;
  if (elsewhere || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
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
  const body = JSON.stringify(bodyOf(held));
  held = null;
  fetch(api("/feedback"), { method: "POST", body, keepalive: true, headers: { "content-type": "application/json" } });
});

document.title = `metrack: judge ${metric}`;
find("back").href = `/m/${encodeURIComponent(metric)}`;
find("judge").value = localStorage.getItem("judge") ?? "";
find("judge").addEventListener("change", () => {
  localStorage.setItem("judge", find("judge").value.trim());
  queue.pairs = [];
  if (find("judging").hidden) turn();
  else attempt(next);
});
addEventListener("hashchange", turn);
attempt(async () => {
  const about = await ask("GET", api());
  nameFeatures(about.features);
  find("question").textContent = about.question;
  find("instructions").hidden = !about.instructions;
  find("instructions").open = Boolean(about.instructions) && localStorage.getItem(`read ${metric}`) !== about.instructions;
  find("instructions-text").textContent = about.instructions;
  localStorage.setItem(`read ${metric}`, about.instructions);
  await turn();
  await next();
});
