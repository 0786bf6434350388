// A table that somebody has, CSV or JSON, as items: numbers to learn on, all else to show.

const IMAGE = /^(image|img|picture|photo)(_?(url|address|link))?$/i;
const LONG = 40; // letters of a text on average; shorter ones are fields of a record

export class Unusable extends Error {}

// Cells of a CSV: quotes hold separators, line ends and doubled quotes.
function cells(text) {
  const separator = text.slice(0, text.indexOf("\n") + 1 || undefined).includes("\t") ? "\t" : ",";
  const rows = [[]];
  let cell = "", quoted = false;
  for (let i = 0; i < text.length; i += 1) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[i + 1] === '"') { cell += c; i += 1; } else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === separator) { rows[rows.length - 1].push(cell); cell = ""; }
    else if (c === "\n") { rows[rows.length - 1].push(cell.replace(/\r$/, "")); cell = ""; rows.push([]); }
    else cell += c;
  }
  rows[rows.length - 1].push(cell);
  return rows.filter((row) => row.length > 1 || row[0] !== "");
}

function fromCsv(text) {
  const [names, ...rows] = cells(text.replace(/^\ufeff/, ""));
  rows.forEach((row, i) => {
    if (row.length !== names.length) throw new Unusable(`Row ${i + 2} has ${row.length} cells, and the first row ${names.length}.`);
  });
  return rows.map((row) => Object.fromEntries(names.map((name, j) => [name.trim(), row[j]])));
}

function fromJson(text) {
  const found = JSON.parse(text);
  const rows = Array.isArray(found) ? found : found.items;
  if (!Array.isArray(rows) || rows.some((row) => row === null || typeof row !== "object")) {
    throw new Unusable("The JSON is no list of objects, one an item.");
  }
  return rows;
}

const isNumber = (value) => (typeof value === "number" || (typeof value === "string" && value.trim() !== "")) && Number.isFinite(Number(value));

export function itemsOf(text, isJson) {
  let rows;
  try {
    rows = isJson ? fromJson(text) : fromCsv(text);
  } catch (error) {
    throw error instanceof Unusable ? error : new Unusable(`It cannot be read: ${error.message}`);
  }
  if (rows.length < 2) throw new Unusable("There are fewer than two rows: nothing to compare.");
  const names = [...new Set(rows.flatMap(Object.keys))];
  const key = names.find((name) => name.toLowerCase() === "id");
  const ids = rows.map((row, i) => String(key === undefined ? i + 1 : row[key]));
  if (new Set(ids).size < ids.length) throw new Unusable(`The ids in column ${key} are not all different.`);
  const vector = names.find((name) => rows.every((row) => Array.isArray(row[name])));
  const numbers = names.filter((name) => name !== key && rows.every((row) => isNumber(row[name])));
  const features = vector === undefined ? numbers : null;
  if (features !== null && !features.length) {
    throw new Unusable("No column has numbers alone. Texts and images need features first, such as an embedding, in columns of their own.");
  }
  const vectors = rows.map((row) => (features === null ? row[vector].map(Number) : features.map((name) => Number(row[name]))));
  const image = names.find((name) => IMAGE.test(name));
  const others = names.filter((name) => ![key, vector, image].includes(name) && !numbers.includes(name));
  const letters = (name) => rows.reduce((sum, row) => sum + String(row[name] ?? "").length, 0) / rows.length;
  const isText = others.length === 1 && (others[0].toLowerCase() === "text" || letters(others[0]) > LONG);
  const value = (given) => (given === undefined || given === null || given === "" ? null : typeof given === "number" ? given : String(given).slice(0, 2000));
  const fields = names.filter((name) => ![key, vector, image].includes(name));
  const found = { ids, vectors };
  if (image !== undefined) found.images = rows.map((row) => (/^https?:/.test(row[image] ?? "") ? row[image] : null));
  if (isText) found.texts = rows.map((row) => value(row[others[0]])?.toString().slice(0, 10000) ?? null);
  else if (others.length) {
    found.records = rows.map((row) => Object.fromEntries(fields.map((name) => [name, numbers.includes(name) ? Number(row[name]) : value(row[name])])));
  }
  return { items: found, features, width: vectors[0].length };
}
