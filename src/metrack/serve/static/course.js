// How well a metric predicts, what changed, and what it relies on.

import { counted, element, find, moment, percent, short, whole } from "/static/common.js";
import { bars, lines, shares } from "/static/charts.js";
import { backwards, change, way, ways } from "/static/words.js";

const MOST_BARS = 10, LEAST_CHANGE = 0.005, COLOURS = 6, SHOWN = 3;
const RANGES = {
  ends: [["all", Infinity, "all"], ["10000", 10000, "the last 10,000"], ["1000", 1000, "the last 1,000"], ["200", 200, "the last 200"]],
  time: [["all", Infinity, "all"], ["week", 604800, "the last 7 days"], ["day", 86400, "the last 24 hours"], ["hour", 3600, "the last hour"]],
};
const NOTES = {
  accuracy: "Of the latest 256 judgements at each point, the share that was predicted rightly.",
  auc: "How often an alike pair was nearer than another one, of the latest 256 judgements: 0.5 is chance, 1 is perfect.",
  loss: "By how much judgements were missed, on average; the lower the better.",
};

export function choices(draw) {
  const fill = () => {
    find("range").replaceChildren(...RANGES[find("axis").value].map(([value, , text]) => element("option", text, { value })));
  };
  fill();
  find("axis").addEventListener("change", () => { fill(); draw(); });
  for (const id of ["measure", "range"]) find(id).addEventListener("change", draw);
}

export function predictions(course, hasPlain) {
  const { series, changes } = course;
  const measure = find("measure").value, axis = find("axis").value;
  const last = series[axis][series.ends.length - 1];
  const width = RANGES[axis].find(([value]) => value === find("range").value)[1];
  const from = last - width;
  const kept = series.ends.map((_, i) => i).filter((i) => series[axis][i] !== null && series[axis][i] >= from);
  const marks = changes.map((each) => (axis === "time" ? each.time : each.pair)).filter((at) => at !== null && at >= from);
  const own = series[measure], plain = measure === "loss" && hasPlain ? series.plain_loss : [];
  lines(find("course"), {
    at: kept.map((i) => series[axis][i]),
    start: axis === "ends" ? Math.max(0, from) : null,
    one: kept.map((i) => own[i]),
    two: plain.length ? kept.map((i) => plain[i]) : [],
    marks,
    most: measure === "loss" ? null : 1,
    word: measure === "accuracy" ? percent : short,
    tick: axis === "time" ? moment : whole,
    label: `${find("measure").selectedOptions[0].text} by ${find("axis").selectedOptions[0].text}`,
  });
  find("plain-legend").hidden = !plain.length;
  find("course-note").textContent = NOTES[measure];
}

export function whatChanged(course) {
  const told = [...course.changes].reverse().map((each) => element("li", change(each)));
  const none = course.series.ends.length ? "No change was noticed so far." : "Nothing was judged so far.";
  find("changes").replaceChildren(...(told.length ? told.slice(0, SHOWN) : [element("li", none, { class: "soft" })]));
  find("changes-earlier").replaceChildren(...told.slice(SHOWN));
  find("earlier").hidden = told.length <= SHOWN;
  const n = course.shares.length, all = course.shares.reduce((sum, share) => sum + share, 0);
  find("features-details").hidden = all === 0;
  const before = course.shares_before ?? course.shares.map(() => 1 / n);
  const moved = course.shares.map((share, i) => ({ i, by: share - before[i] }))
    .filter((each) => Math.abs(each.by) >= LEAST_CHANGE)
    .sort((a, b) => Math.abs(b.by) - Math.abs(a.by)).slice(0, MOST_BARS);
  const name = (i) => course.features?.[i] ?? `feature ${i + 1}`;
  const since = course.changes.length ? "before the last change" : course.shares_before ? "at the start" : "when all counted the same";
  const top = course.shares.map((share, i) => [share, i]).sort((a, b) => b[0] - a[0]).slice(0, 3);
  const counts = top.filter(([share]) => share >= 0.01).map(([share, i]) => `${name(i)} (${percent(share)})`).join(", ");
  if (find("features-details").open) bars(find("features"), moved.map((each) => name(each.i)), moved.map((each) => each.by), "Features that gained or lost");
  find("features-note").textContent = `Counting most now: ${counts}.${moved.length ? ` Bars: against ${since}.` : ""}`;
}

const pairs = (memory) => (memory === null ? "all" : whole(memory));

// Learners in at most six groups, the shortest memories first; ways are never mixed.
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
      const name = kinds.length > 1 ? `${kind}, looks at ${range}` : `looks at ${range}`;
      found.push({ name, columns: some.map((e) => e.j), colour: found.length % COLOURS });
    }
  }
  return found;
}

export function relies(course, now) {
  find("trust-panel").hidden = !course.experts.length;
  if (!course.experts.length) return;
  const weights = course.weights_now;
  find("back").textContent = backwards(now.pairs, course.experts, weights);
  if (now.effective_window !== null && now.pairs) find("back").textContent += ` On average at the last ${counted(now.effective_window, "judgement")}.`;
  find("decides").replaceChildren(...ways(course.experts, weights).map(([kind, share]) => {
    const entry = element("li");
    const bar = element("meter", undefined, { min: 0, max: 1, value: share, "aria-label": way(kind) });
    entry.append(element("strong", percent(share)), bar, element("span", way(kind)));
    return entry;
  }));
  if (!find("trust-details").open) return;
  const groups = grouped(course.experts);
  shares(find("trust"), course.ends, course.weights, groups, "Trust in learners, over time");
  find("trust-legend").replaceChildren(...groups.map((group) => {
    const entry = element("li");
    entry.append(element("span", undefined, { class: `scale-${group.colour}` }), group.name);
    return entry;
  }));
}
