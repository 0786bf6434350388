// Items as people see them: an image, a text, a record, or else their features.

import { element, short } from "/static/common.js";

const MOST_ROWS = 50;
const features = { names: null };

export const nameFeatures = (names) => { features.names = names; };

// One line for lists.
export function caption(item) {
  if (item.text) return item.text.length > 90 ? `${item.text.slice(0, 89)}…` : item.text;
  if (item.record) return Object.values(item.record).filter((value) => value !== null && value !== "").slice(0, 4).join(", ");
  return item.id;
}

export function thumbnail(item) {
  return item.image ? [element("img", undefined, { src: item.image, alt: item.text ?? item.id, class: "thumbnail", loading: "lazy" })] : [];
}

const told = (value) => (typeof value === "number" ? short(value) : value ?? "–");

export function rowsOf(item) {
  if (item.record) return Object.entries(item.record).map(([name, value]) => [name, told(value)]);
  return item.vector.slice(0, MOST_ROWS).map((value, i) => [features.names?.[i] ?? `feature ${i + 1}`, short(value)]);
}

export const isPlain = (item) => !item.image && !item.text;
