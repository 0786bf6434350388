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

const steps = [1, 2, 5, 10];

function ticks(most, n = 4) {
  const rough = most / n, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * steps.find((each) => each * power >= rough);
  const found = [];
  for (let at = 0; at <= most * 1.0001; at += step) found.push(at);
  return found;
}

const number = (value) =>
  value >= 10000 ? `${+(value / 1000).toPrecision(3)}k` : `${+value.toPrecision(3)}`;

function axes([svg, W], xMost, yMost, yWord) {
  const x = (value) => LEFT + (W - LEFT - RIGHT) * (value / xMost);
  const y = (value) => H - BOTTOM - (H - TOP - BOTTOM) * (value / yMost);
  for (const at of ticks(yMost)) {
    svg.append(draw("line", { x1: LEFT, x2: W - RIGHT, y1: y(at), y2: y(at), class: "axis" }));
    svg.append(draw("text", { x: LEFT - 6, y: y(at) + 4, "text-anchor": "end" }, yWord(at)));
  }
  for (const at of ticks(xMost)) {
    svg.append(draw("text", { x: x(at), y: H - 10, "text-anchor": "middle" }, number(at)));
  }
  return [x, y];
}

function nothing(where, text) {
  const said = document.createElement("p");
  said.className = "soft";
  said.textContent = text;
  where.replaceChildren(said);
}

// Two lines over time, and where changes were noticed.
export function lines(where, ends, one, two, changes, label) {
  if (!ends.length) return nothing(where, "The first point comes after 256 pairs.");
  const drawn = canvas(where, label), [svg] = drawn;
  const most = Math.max(1e-9, ...one, ...two);
  const [x, y] = axes(drawn, ends[ends.length - 1], most * 1.05, number);
  for (const at of changes) {
    svg.append(draw("line", { x1: x(at), x2: x(at), y1: TOP, y2: H - BOTTOM, class: "mark" }));
  }
  for (const [values, name] of [[two, "two"], [one, "one"]]) {
    if (values.length !== ends.length) continue;
    const path = values.map((v, i) => `${i ? "L" : "M"}${x(ends[i]).toFixed(1)} ${y(v).toFixed(1)}`);
    if (path.length === 1) path.push(`L${LEFT} ${y(values[0]).toFixed(1)}`);
    svg.append(draw("path", { d: path.join(""), class: `line ${name}` }));
  }
}

// Shares of one over time, one upon the other; `groups` has a name and the columns it sums.
export function shares(where, ends, rows, groups, label) {
  if (!ends.length || !groups.length) return nothing(where, "Nothing to show yet.");
  const drawn = canvas(where, label), [svg] = drawn;
  const [x, y] = axes(drawn, ends[ends.length - 1], 1, (v) => `${Math.round(100 * v)}%`);
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

  show(ids, points, label, chosen) {
    if (!ids.length) { this.svg = null; this.dots.clear(); return nothing(this.where, "There are no items."); }
    if (this.svg === null) this.svg = canvas(this.where, label, 360)[0];
    const W = this.svg.viewBox.baseVal.width, most = Math.max(1e-12, ...points.flat().map(Math.abs));
    const scale = (Math.min(W, 360) / 2 - 10) / most;
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
    this.move();
  }

  move() {
    const start = performance.now(), lasts = this.still ? 0 : 600;
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
