// Two items side by side: images, texts with their differences marked, records field by field.

import { element } from "/static/common.js";
import { differences } from "/static/differences.js";
import { isPlain, rowsOf } from "/static/faces.js";

function marked(parts) {
  const shown = element("p", undefined, { class: "text" });
  for (const { text, same } of parts) {
    if (same || !text.trim()) shown.append(text);
    else shown.append(element("mark", text));
  }
  return shown;
}

function side(item, parts, label) {
  const shown = element("section", undefined, { class: "panel item", "aria-label": label });
  if (item.image) shown.append(element("img", undefined, { src: item.image, alt: item.text ?? item.id }));
  if (parts) shown.append(marked(parts));
  if (item.image && !parts && !item.record) shown.append(element("p", item.id, { class: "soft" }));
  return shown;
}

// Fields of both in one table, so that what is compared stands side by side.
function table(a, b) {
  const [x, z] = [new Map(rowsOf(a)), new Map(rowsOf(b))];
  const shown = element("table", undefined, { class: "aligned" });
  const head = element("tr");
  head.append(element("td"), ...[a, b].map((item) => element("th", item.id, { scope: "col" })));
  shown.append(element("thead"), element("tbody"));
  shown.tHead.append(head);
  for (const name of new Set([...x.keys(), ...z.keys()])) {
    const values = [x.get(name) ?? "–", z.get(name) ?? "–"];
    const row = element("tr", undefined, values[0] === values[1] ? {} : { class: "differs" });
    const cells = values.map((value) => {
      const cell = element("td");
      cell.append(values[0] === values[1] ? value : element("mark", value));
      return cell;
    });
    row.append(element("th", name, { scope: "row" }), ...cells);
    shown.tBodies[0].append(row);
  }
  const around = element("div", undefined, { class: "panel" });
  around.append(shown);
  return around;
}

export function showPair(where, { a, b }) {
  const parts = a.text && b.text ? differences(a.text, b.text) : [a, b].map((item) => (item.text ? [{ text: item.text, same: true }] : null));
  const sides = element("div", undefined, { class: "sides" });
  sides.append(side(a, parts[0], "First item"), side(b, parts[1], "Second item"));
  const shown = [];
  if (!(isPlain(a) && isPlain(b))) shown.push(sides);
  if ((isPlain(a) && isPlain(b)) || a.record || b.record) shown.push(table(a, b));
  where.replaceChildren(...shown);
}
