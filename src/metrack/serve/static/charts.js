// Small charts in SVG. Colours are classes: the style sheet knows light and dark.

const SPACE = "http://www.w3.org/2000/svg";
const H = 240, LEFT = 46, RIGHT = 14, TOP = 10, BOTTOM = 30;

function draw(name, attributes, text) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// As wide as there is room for, so that letters have their size on any screen.
function canvas(where, label, height = H) {
  const width = Math.max(240, where.clientWidth);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  where.replaceChildren(svg);
  return [svg, width];
}

const HALF = 0.5, steps = [1, 2, 5, 10];

function ticks(most, n = 4) {
  const rough = most / n, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * steps.find((each) => each * power >= rough);
  const found = [];
  for (let at = 0; at <= most * 1.0001; at += step) found.push(at);
  return found;
}

const number = (value) =>
  value >= 10000 ? `${+(value / 1000).toPrecision(3)}k` : `${+value.toPrecision(3)}`;

// Round steps on an axis of numbers, or of times in seconds.
function between(from, to, isTime) {
  if (!isTime) return ticks(to - from).map((at) => from + at);
  const span = to - from;
  const step = [1, 5, 15, 60, 300, 900, 3600, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 7776000, 31536000].find((each) => span / each <= 4) ?? span / 3;
  const zone = step >= 86400 ? 60 * new Date().getTimezoneOffset() : 0, found = [];
  for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to; at += step) found.push(at);
  return found.length ? found : [from];
}

function axes([svg, W], [xLeast, xMost], [yLeast, yMost], words, isTime = false) {
  const x = (value) => LEFT + (W - LEFT - RIGHT) * ((value - xLeast) / Math.max(1e-9, xMost - xLeast));
  const y = (value) => H - BOTTOM - (H - TOP - BOTTOM) * ((value - yLeast) / (yMost - yLeast));
  for (const at of between(yLeast, yMost, false)) {
    svg.append(draw("line", { x1: LEFT, x2: W - RIGHT, y1: y(at), y2: y(at), class: "axis" }));
    svg.append(draw("text", { x: LEFT - 6, y: y(at) + 4, "text-anchor": "end" }, words.y(at)));
  }
  let free = 0;
  for (const at of between(xLeast, xMost, isTime)) {
    const text = words.x(at), half = 3.4 * text.length, middle = Math.min(x(at), W - half - 2);
    if (middle - half < free) continue; // it would lie on the one before
    svg.append(draw("text", { x: middle, y: H - 10, "text-anchor": "middle" }, text));
    free = middle + half + 8;
  }
  return [x, y];
}

function nothing(where, text) {
  const said = document.createElement("p");
  said.className = "soft";
  said.textContent = text;
  where.replaceChildren(said);
}

// One or two lines, and where changes were noticed.
export function lines(where, { at, start, one, two, marks, most, word, tick, label }) {
  const known = [...one, ...two].filter((value) => value !== null);
  if (!at.length || !known.length) return nothing(where, at.length ? "This learner does not tell." : "The first point comes after a few judgements.");
  const drawn = canvas(where, label), [svg] = drawn;
  const yMost = most ?? Math.max(1e-9, ...known) * 1.05;
  const yLeast = most === null || Math.min(...known) < HALF ? 0 : HALF; // below a half is worse than chance
  const from = start ?? at[0], to = Math.max(at[at.length - 1], from + 1e-6);
  const [x, y] = axes(drawn, [from, to], [yLeast, yMost], { x: tick, y: word }, start === null);
  for (const mark of marks) {
    if (mark >= from && mark <= to) svg.append(draw("line", { x1: x(mark), x2: x(mark), y1: TOP, y2: H - BOTTOM, class: "mark" }));
  }
  for (const [values, name] of [[two, "two"], [one, "one"]]) {
    const path = pathOf(values, (_, i) => x(at[i]), y);
    if (path) svg.append(draw("path", { d: path, class: `line ${name}` }));
    const last = values.length - 1;
    if (values.filter((value) => value !== null).length === 1 && values[last] !== null) svg.append(draw("circle", { cx: x(at[last]), cy: y(values[last]), r: 3, class: "dot" }));
  }
}

// Two small lines without axes.
export function spark(where, { loss, plain_loss: plain }, label) {
  const all = [...loss, ...plain].filter((value) => value !== null);
  if (all.length < 2) return nothing(where, "A line comes with more judgements.");
  const height = 48, [svg, W] = canvas(where, label, height);
  const most = Math.max(1e-9, ...all), step = (W - 4) / Math.max(1, loss.length - 1);
  for (const [values, name] of [[plain, "two"], [loss, "one"]]) {
    const path = pathOf(values, (_, i) => 2 + i * step, (v) => height - 3 - (height - 6) * (v / most));
    if (path) svg.append(draw("path", { d: path, class: `line ${name}` }));
  }
}

// A line through all values that are known.
function pathOf(values, x, y) {
  let pen = "M";
  return values.map((value, i) => {
    if (value === null) { pen = "M"; return ""; }
    const point = `${pen}${x(value, i).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = "L";
    return point;
  }).join("");
}

// Shares of one over time, one upon the other; `groups` has a name and the columns it sums.
export function shares(where, ends, rows, groups, label) {
  if (!ends.length || !groups.length) return nothing(where, "Nothing to show yet.");
  const drawn = canvas(where, label), [svg] = drawn;
  const words = { x: number, y: (v) => `${Math.round(100 * v)}%` };
  const [x, y] = axes(drawn, [0, ends[ends.length - 1]], [0, 1], words);
  const at = [0, ...ends];
  const below = at.map(() => 0);
  for (const group of groups) {
    const values = rows.map((row) => group.columns.reduce((sum, j) => sum + (row[j] ?? 0), 0));
    const top = [values[0], ...values].map((v, i) => below[i] + v);
    const there = at.map((t, i) => `${x(t).toFixed(1)} ${y(top[i]).toFixed(1)}`);
    const back = at.map((t, i) => `${x(t).toFixed(1)} ${y(below[i]).toFixed(1)}`).reverse();
    svg.append(draw("path", { d: `M${[...there, ...back].join("L")}Z`, class: `scale-${group.colour}` }));
    top.forEach((v, i) => { below[i] = v; });
  }
}

// Bars to the left and to the right of nothing.
export function bars(where, names, values, label) {
  if (!values.length) return nothing(where, "Nothing has moved so far.");
  const row = 24;
  const [svg, W] = canvas(where, label, row * values.length + 8);
  const middle = W * 0.66, wide = W * 0.34 - 52; // of a bar; its figure stands beside it
  const most = Math.max(0.01, ...values.map(Math.abs));
  values.forEach((value, i) => {
    const top = 4 + i * row, width = Math.abs(value) / most * wide;
    const left = value < 0 ? middle - width : middle;
    const room = Math.max(6, Math.floor((middle - wide - 52) / 7));
    const name = names[i].length > room ? `${names[i].slice(0, room - 1)}…` : names[i];
    svg.append(draw("text", { x: 0, y: top + 16, class: "label" }, name));
    svg.append(draw("rect", { x: left, y: top + 3, width, height: row - 8, class: value < 0 ? "loss" : "gain" }));
    const side = value < 0 ? { x: left - 5, "text-anchor": "end" } : { x: left + width + 5 };
    const said = `${value < 0 ? "−" : "+"}${(100 * Math.abs(value)).toFixed(1)}%`;
    svg.append(draw("text", { ...side, y: top + 16 }, said));
  });
}

// Points that move to where they are now.
export class Scatter {
  constructor(where) {
    this.where = where;
    this.dots = new Map();
    this.svg = null;
    this.still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  }

  show(ids, points, label, chosen, quick = false) { // from -1 to 1
    if (!ids.length) { this.svg = null; this.dots.clear(); return nothing(this.where, "There are no items."); }
    if (this.svg === null) this.svg = canvas(this.where, label, 360)[0];
    const W = this.svg.viewBox.baseVal.width;
    const scale = Math.min(W, 360) / 2 - 10;
    const known = new Set(ids);
    for (const [id, dot] of this.dots) {
      if (!known.has(id)) { dot.circle.remove(); this.dots.delete(id); }
    }
    ids.forEach((id, i) => {
      const to = [W / 2 + scale * points[i][0], 180 - scale * points[i][1]];
      let dot = this.dots.get(id);
      if (dot === undefined) {
        const circle = draw("circle", { r: 4, cx: to[0], cy: to[1], class: "dot" });
        circle.append(draw("title", {}, id));
        this.svg.append(circle);
        dot = { circle, at: to };
        this.dots.set(id, dot);
      }
      dot.from = dot.at;
      dot.to = to;
      dot.circle.setAttribute("class", id === chosen ? "dot chosen" : "dot");
    });
    this.move(quick || this.still ? 0 : 600);
  }

  move(lasts) {
    const start = performance.now();
    this.run = start;
    const frame = (now) => {
      if (this.run !== start) return; // another picture has come
      const part = lasts ? Math.min(1, Math.max(0, (now - start) / lasts)) : 1;
      const eased = part * (2 - part);
      for (const dot of this.dots.values()) {
        dot.at = [0, 1].map((k) => dot.from[k] + eased * (dot.to[k] - dot.from[k]));
        dot.circle.setAttribute("cx", dot.at[0].toFixed(2));
        dot.circle.setAttribute("cy", dot.at[1].toFixed(2));
      }
      if (part < 1) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }
}
