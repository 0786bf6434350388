// All metrics at a glance, looked at every two seconds.

import { ago, ask, element, find, oneAtATime, percent, problem, today, whole } from "/static/common.js";
import { spark } from "/static/charts.js";

const MOST = 60; // cards; the others are found by name

function fact(term, value, title) {
  const made = element("div", undefined, title ? { title } : {});
  made.append(element("dt", term), element("dd", value));
  return made;
}

function changed(each) {
  if (!each.last_change) return "none";
  return each.last_change_time ? ago(each.last_change_time) : `pair ${whole(each.last_change)}`;
}

function card(each) {
  const path = `/m/${encodeURIComponent(each.name)}`;
  const made = element("article", undefined, { class: "panel card" });
  const title = element("h3");
  title.append(element("a", each.name, { href: path }));
  const health = element("p", each.health.text, { class: `health ${each.health.level}` });
  const picture = element("div", undefined, { class: "spark" });
  const facts = element("dl", undefined, { class: "facts" });
  facts.append(
    fact("right", percent(each.accuracy), "share of the latest 256 judgements that were as predicted"),
    fact("AUC", each.auc === null ? "–" : each.auc.toFixed(2), "how often an alike pair was nearer than another, of the latest 256"),
    fact("today", whole(today(each.hours))),
    fact("last change", changed(each)),
  );
  made.append(title, health, picture, facts);
  if (each.learns_from === "pairs") {
    const judge = element("p");
    judge.append(element("a", "Judge pairs", { href: `${path}/judge`, class: "button", "aria-label": `judge pairs of ${each.name}` }));
    made.append(judge);
  }
  return [made, () => spark(picture, each.sparks, `Loss of ${each.name} and of plain distance, lately`)];
}

const refresh = oneAtATime(async () => {
  const { metrics } = await ask("GET", "/v1/metrics");
  problem(null);
  const wanted = find("filter").value.trim().toLowerCase();
  const found = metrics.filter((each) => each.name.toLowerCase().includes(wanted));
  // Links keep the keyboard's focus while nothing has changed.
  const text = JSON.stringify([found, Math.floor(Date.now() / 60000)]);
  if (text === refresh.last) return;
  refresh.last = text;
  const focused = document.activeElement?.getAttribute("href");
  const cards = found.slice(0, MOST).map(card);
  find("metrics").replaceChildren(...cards.map(([made]) => made));
  for (const [, draw] of cards) draw();
  if (focused) document.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
  find("none").hidden = metrics.length > 0;
  find("legend").hidden = !found.some((each) => each.sparks.loss.length > 1);
  find("filter-label").hidden = metrics.length < 8;
  find("more").hidden = found.length <= MOST;
  find("more").textContent = `${whole(found.length - MOST)} more: find them by name.`;
});

find("filter").addEventListener("input", refresh);
refresh();
setInterval(refresh, 2000);
