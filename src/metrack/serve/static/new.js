// Makes a metric, with items from a file where there is one.

import { ask, find, send } from "/static/common.js";
import { Unusable, itemsOf } from "/static/tables.js";

const AT_A_TIME = 1000; // items of a request
let read = null; // what the file holds

function wrong(id, error) {
  const shown = find(id);
  shown.hidden = error === null;
  shown.textContent = error?.message ?? "";
}

find("new-file").addEventListener("change", async () => {
  const [file] = find("new-file").files;
  read = null;
  wrong("new-problem", null);
  find("new-said").textContent = "";
  if (!file) return;
  try {
    read = itemsOf(await file.text(), file.name.endsWith(".json"));
    const shown = ["images", "texts", "records"].filter((name) => read.items[name]);
    const told = shown.length ? `; judges see their ${shown.join(" and ")}` : "";
    find("new-said").textContent = `${read.items.ids.length.toLocaleString("en")} items with ${read.width} features${told}.`;
    find("new-width").value = read.width;
    find("new-name").value ||= file.name.replace(/\.[^.]*$/, "").replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "").slice(0, 64);
  } catch (error) {
    if (!(error instanceof Unusable)) throw error;
    wrong("new-problem", error);
  }
});

async function put(path) {
  const { items } = read;
  for (let start = 0; start < items.ids.length; start += AT_A_TIME) {
    const some = Object.entries(items).map(([name, all]) => [name, all.slice(start, start + AT_A_TIME)]);
    await ask("PUT", `${path}/items`, Object.fromEntries(some));
  }
}

find("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  wrong("new-problem", null);
  const name = find("new-name").value.trim(), width = read?.width ?? Number(find("new-width").value);
  const path = `/v1/metrics/${encodeURIComponent(name)}`;
  try {
    if (!width) throw new Unusable("Give a table of items, or the number of features.");
    const { metrics } = await ask("GET", "/v1/metrics");
    if (metrics.some((each) => each.name === name)) throw new Unusable(`There is a metric ${name} already: take another name.`);
    const body = { n_features: width, estimator: find("new-estimator").value, question: find("new-question").value.trim() || null };
    if (read?.features) body.features = read.features;
    if (find("new-instructions").value.trim()) body.instructions = find("new-instructions").value.trim();
    await ask("PUT", path, body);
    if (read) await put(path);
    location.href = `/m/${encodeURIComponent(name)}`;
  } catch (error) {
    wrong("new-problem", error);
  }
});

find("import").addEventListener("submit", async (event) => {
  event.preventDefault();
  const name = find("import-name").value.trim();
  try {
    await send("PUT", `/v1/metrics/${encodeURIComponent(name)}/state`, find("import-file").files[0], "application/zip");
    location.href = `/m/${encodeURIComponent(name)}`;
  } catch (error) {
    wrong("import-problem", error);
  }
});
