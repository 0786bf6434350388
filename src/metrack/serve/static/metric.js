// One metric, live: looked at every second, and drawn again where it has moved.

import { ago, api, ask, element, find, metric, oneAtATime, percent, problem, short, today, whole } from "/static/common.js";
import { nearest, picture } from "/static/around.js";
import { part, said } from "/static/progress.js";
import { choices, predictions, relies, whatChanged } from "/static/course.js";

let now = null, course = null;

function facts() {
  const shown = {
    "right": percent(now.accuracy),
    "AUC": now.auc === null ? "–" : now.auc.toFixed(2),
    "loss": short(now.loss),
    "plain distance's": short(now.plain_loss),
    "judgements": whole(now.sequence),
    "today": whole(today(now.hours)),
    "to learn": whole(now.sequence - now.version),
    "last change": !now.last_change ? "none" : now.last_change_time ? ago(now.last_change_time) : `at ${whole(now.last_change)}`,
    "alike up to": short(now.threshold),
  };
  if (now.plain_loss === null) delete shown["plain distance's"];
  if (now.threshold === null) delete shown["alike up to"];
  find("facts").replaceChildren(...Object.entries(shown).map(([term, value]) => {
    const pair = element("div");
    pair.append(element("dt", term), element("dd", value));
    return pair;
  }));
  find("health").textContent = now.health.text;
  find("health").className = `health ${now.health.level}`;
  const fromPairs = now.learns_from === "pairs";
  find("judge").hidden = find("judges-panel").hidden = !fromPairs;
  find("question").textContent = fromPairs ? `${now.question} ${now.estimator} on ${whole(now.n_features)} features.` : `${now.estimator} learns from ${now.learns_from} with ${whole(now.n_features)} features.`;
  if (now.error) problem(new Error(now.error));
}

async function judges() {
  if (now.learns_from !== "pairs") return;
  const found = await ask("GET", api("/judges"));
  find("how-far").hidden = !found.judges.length || !find("items").children.length;
  const answers = JSON.stringify(found.judges);
  if (!find("how-far").hidden && answers !== judges.last) { // it costs the server some work
    const progress = await ask("GET", api("/progress"));
    find("progress").value = part(progress);
    find("progress-said").textContent = said(progress);
    judges.last = answers;
  }
  find("judges").replaceChildren(...found.judges.map((each) => {
    const row = element("tr");
    row.append(...[each.judge, whole(each.alike), whole(each.not_alike), whole(each.unsure)].map((text) => element("td", text)));
    return row;
  }));
  find("judges-table").hidden = !found.judges.length;
  find("judges-none").textContent = found.judges.length ? "" : "Nobody has given a name with an answer so far.";
  find("agreement").replaceChildren(...found.agreement.slice(0, 5).map((each) => {
    const kappa = each.kappa === null ? "" : `; Cohen's kappa ${each.kappa.toFixed(2)}`;
    return element("li", `${each.judges.join(" and ")} agree on ${percent(each.share)} of ${whole(each.pairs)} pairs that both answered${kappa}.`);
  }));
  find("settle-row").hidden = !found.disagreements;
  find("settle").textContent = `Settle ${whole(found.disagreements)} disagreement${found.disagreements === 1 ? "" : "s"}`;
}

function drawn() {
  if (course === null) return;
  predictions(course, now.plain_loss !== null);
  whatChanged(course);
  relies(course, now);
}

const refresh = oneAtATime(async () => {
  await picture();
  course = await ask("GET", api("/course"));
  drawn();
  find("before-column").hidden = course.before === null;
  if (course.before !== null) await nearest("before");
  await nearest("now");
  await judges();
});

// Short requests, and no stream of events: with one that stays open a page never counts as loaded.
const look = oneAtATime(async () => {
  now = await ask("GET", api());
  facts();
  const text = JSON.stringify(now);
  if (text !== look.last) await refresh();
  else if (!find("items").children.length) { // some may have been put meanwhile
    await picture();
    if (find("items").children.length) await nearest("now");
  }
  look.last = text;
});

const path = `/m/${encodeURIComponent(metric)}`;
document.title = `metrack: ${metric}`;
find("name").textContent = metric;
find("judge").href = `${path}/judge`;
find("settle").href = `${path}/judge#settle`;
find("item").addEventListener("change", refresh);
choices(drawn);
for (const id of ["features-details", "trust-details"]) find(id).addEventListener("toggle", drawn);

look();
setInterval(look, 1000);
let resizing = 0;
addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(refresh, 200); });
