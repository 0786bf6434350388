// Items in the plane, and what is near to one of them.

import { api, ask, element, find, short, whole } from "/static/common.js";
import { Scatter } from "/static/charts.js";
import { caption, thumbnail } from "/static/faces.js";

const scatter = new Scatter(find("embedding"));
let seen = null; // the last picture

// Each picture fills the frame: what matters is what lies near to what.
function fitted(points) {
  const most = Math.max(1e-12, ...points.flat().map(Math.abs));
  return points.map((point) => point.map((value) => value / most));
}

function place() {
  const part = seen.before === null ? 1 : Number(find("slide").value) / 100;
  const now = fitted(seen.points);
  if (part === 1) return now;
  const before = fitted(seen.before);
  return now.map((point, i) => point.map((value, k) => (1 - part) * before[i][k] + part * value));
}

function show(quick) {
  scatter.show(seen.ids, place(), `Items in the plane, version ${seen.version}`, find("item").value, quick);
}

export async function picture() {
  seen = await ask("GET", api("/embedding?n=500"));
  find("slide-row").hidden = seen.before === null || !seen.ids.length;
  show(false);
  find("embedding").dataset.version = seen.version;
  const moving = seen.before === null ? "" : " Move the slider to see what the last change did.";
  find("embedding-note").textContent = seen.ids.length ? `Two of the directions.${moving}` : "Bring some below, or send them to …/items.";
  const listed = find("items");
  if (listed.children.length !== seen.ids.length) {
    listed.replaceChildren(...seen.ids.map((id) => element("option", undefined, { value: id })));
    find("item").value ||= seen.ids[0] ?? "";
  }
}

function entry(each) {
  const made = element("li"), said = caption(each);
  made.append(...thumbnail(each), element("span", said === each.id ? each.id : `${each.id}: ${said}`), " ", element("span", `(${short(each.distance)})`, { class: "soft" }));
  return made;
}

export async function nearest(at) {
  const id = find("item").value.trim();
  let shown = [element("li", "Choose an item.", { class: "soft" })];
  if (id) {
    try {
      const found = await ask("POST", api("/neighbours"), { id, k: 8, at, shown: true });
      shown = found.neighbours.map(entry);
      if (at === "now" && found.of) find("item-face").replaceChildren(...thumbnail(found.of), element("span", caption(found.of)));
    } catch (error) {
      shown = [element("li", error.message, { class: "soft" })];
    }
  }
  find(at).replaceChildren(...shown);
}

find("slide").addEventListener("input", () => { if (seen !== null) show(true); });
export const count = () => (seen === null ? 0 : whole(seen.ids.length));
