// What goes out and comes in: the state, the judgements, the items.

import { api, ask, find, metric, send, whole } from "/static/common.js";
import { itemsOf } from "/static/tables.js";

const PARQUET = "application/vnd.apache.parquet";

find("export-state").href = api("/export");
find("export-log").href = api("/log");
find("export-items").href = api("/items");
for (const [id, ending] of [["export-state", ".zip"], ["export-log", ".parquet"], ["export-items", "-items.parquet"]]) find(id).download = metric + ending;

function brings(id, work) {
  find(id).addEventListener("change", async () => {
    const [file] = find(id).files;
    if (!file) return;
    find("files-problem").hidden = true;
    find("files-said").textContent = "Under way …";
    try {
      find("files-said").textContent = await work(file);
    } catch (error) {
      find("files-said").textContent = "";
      find("files-problem").hidden = false;
      find("files-problem").textContent = error.message;
    }
    find(id).value = "";
  });
}

brings("bring-log", async (file) => {
  const { accepted, duplicates } = await send("POST", api("/log"), file, PARQUET);
  return `${whole(accepted)} judgements came, ${whole(duplicates)} were known.`;
});

brings("bring-items", async (file) => {
  if (file.name.endsWith(".parquet")) {
    return `There are ${whole((await send("PUT", api("/items"), file, PARQUET)).items)} items now.`;
  }
  const { items } = itemsOf(await file.text(), file.name.endsWith(".json"));
  return `There are ${whole((await ask("PUT", api("/items"), items)).items)} items now.`;
});
