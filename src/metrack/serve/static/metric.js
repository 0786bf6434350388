// One metric, live: looked at every second, and drawn again where it has moved.

import { api, ask, counted, element, find, metric, oneAtATime, problem, short, whole } from "/static/common.js";
import { Scatter, bars, lines, shares } from "/static/charts.js";

const MOST_BARS = 10, LEAST_CHANGE = 0.005, COLOURS = 6;
const scatter = new Scatter(find("embedding"));

function facts(now) {
  const shown = {
    "judgements": whole(now.sequence),
    "to learn": whole(now.sequence - now.version),
    "version": whole(now.version),
    "loss": short(now.loss),
    "plain distance's": short(now.plain_loss),
    "rests on the last": now.effective_window === null ? "–" : counted(now.effective_window, "pair"),
    "last change": now.last_change ? `at pair ${whole(now.last_change)}` : "none",
    "alike up to": short(now.threshold),
    "directions": whole(now.rank),
  };
  find("facts").replaceChildren(...Object.entries(shown).map(([term, value]) => {
    const pair = element("div");
    pair.append(element("dt", term), element("dd", value));
    return pair;
  }));
  problem(now.error ? new Error(now.error) : null);
}

const pairs = (memory) => (memory === null ? "all pairs" : `${whole(memory)}`);

// Experts in at most six groups, the shortest memories first; kinds are never mixed.
function grouped(experts) {
  const kinds = [...new Set(experts.map((each) => each.kind))];
  const each = Math.max(1, Math.floor(COLOURS / Math.max(1, kinds.length)));
  const found = [];
  for (const kind of kinds) {
    const own = experts.map((e, j) => ({ ...e, j })).filter((e) => e.kind === kind)
      .sort((a, b) => (a.memory ?? Infinity) - (b.memory ?? Infinity));
    const size = Math.ceil(own.length / each);
    for (let i = 0; i < own.length; i += size) {
      const some = own.slice(i, i + size), first = some[0].memory, last = some[some.length - 1].memory;
      const range = first === last ? pairs(first) : `${pairs(first)} to ${pairs(last)}`;
      const name = kinds.length > 1 ? `${kind}, ${range}` : range;
      found.push({ name, columns: some.map((e) => e.j), colour: found.length % COLOURS });
    }
  }
  return found;
}

function trust(course) {
  const groups = grouped(course.experts);
  shares(find("trust"), course.ends, course.weights, groups, "Trust in learners by memory length, over time");
  find("trust-legend").replaceChildren(...groups.map((group) => {
    const entry = element("li");
    entry.append(element("span", undefined, { class: `scale-${group.colour}` }), group.name);
    return entry;
  }));
}

function features(course) {
  const n = course.shares.length;
  const before = course.shares_before ?? course.shares.map(() => 1 / n);
  const moved = course.shares.map((share, i) => ({ i, by: share - before[i] }))
    .filter((each) => Math.abs(each.by) >= LEAST_CHANGE)
    .sort((a, b) => Math.abs(b.by) - Math.abs(a.by)).slice(0, MOST_BARS);
  const name = (i) => course.features?.[i] ?? `feature ${i + 1}`;
  bars(find("features"), moved.map((each) => name(each.i)), moved.map((each) => each.by), "Features that gained or lost");
  const since = course.changes.length ? "the last change that was noticed" : "the first pairs";
  find("features-note").textContent = moved.length ? `Shares of the metric, against those before ${since}.` : "";
}

async function picture() {
  const found = await ask("GET", api("/embedding?n=500"));
  scatter.show(found.ids, found.points, `Items in the plane, version ${found.version}`, find("item").value);
  find("embedding").dataset.version = found.version;
  find("embedding-note").textContent = found.ids.length ? `Two of the directions; version ${whole(found.version)}.` : "Put some to …/items.";
  const listed = find("items");
  if (listed.children.length !== found.ids.length) {
    listed.replaceChildren(...found.ids.map((id) => element("option", undefined, { value: id })));
    find("item").value ||= found.ids[0] ?? "";
  }
}

async function nearest(at) {
  const id = find("item").value.trim();
  let shown = [];
  if (id) {
    try {
      const found = await ask("POST", api("/neighbours"), { id, k: 8, at });
      shown = found.neighbours.map((each) => element("li", `${each.id} (${short(each.distance)})`));
    } catch (error) {
      shown = [element("li", error.message, { class: "soft" })];
    }
  }
  find(at).replaceChildren(...shown);
}

async function judges() {
  const found = await ask("GET", api("/judges"));
  find("judges").replaceChildren(...found.judges.map((each) => {
    const row = element("tr");
    const cells = [each.judge, whole(each.alike), whole(each.not_alike), whole(each.unsure)];
    row.append(...cells.map((text) => element("td", text)));
    return row;
  }));
}

const refresh = oneAtATime(async () => {
  await picture();
  const course = await ask("GET", api("/course"));
  lines(find("losses"), course.ends, course.loss, course.plain_loss, course.changes,
    "Mean loss of this metric and of plain distance, over pairs");
  trust(course);
  features(course);
  if (course.before === null) find("before").replaceChildren(element("li", "None was noticed so far.", { class: "soft" }));
  else await nearest("before");
  await nearest("now");
  await judges();
});

// Short requests, and no stream of events: with one that stays open a page never counts as loaded.
const look = oneAtATime(async () => {
  const now = await ask("GET", api());
  facts(now);
  const text = JSON.stringify(now);
  if (text !== look.last) await refresh();
  else if (!find("items").children.length) await picture(); // some may have been put meanwhile
  look.last = text;
});

document.title = `metrack: ${metric}`;
find("name").textContent = metric;
find("judge").href = `/m/${encodeURIComponent(metric)}/judge`;
find("item").addEventListener("change", refresh);

look();
setInterval(look, 1000);
let resizing = 0;
addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(refresh, 200); });
