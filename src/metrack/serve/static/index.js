// All metrics at a glance, looked at every two seconds.

import { ask, element, find, oneAtATime, problem, short, whole } from "/static/common.js";

const titles = [...document.querySelectorAll("th")].map((each) => each.textContent);

function row(each) {
  const made = element("tr");
  const path = `/m/${encodeURIComponent(each.name)}`;
  const name = element("td");
  name.append(element("a", each.name, { href: path }));
  const judge = element("td");
  judge.append(element("a", "judge", { href: `${path}/judge`, "aria-label": `judge pairs of ${each.name}` }));
  const changed = each.last_change ? `at pair ${whole(each.last_change)}` : "–";
  const cells = [whole(each.sequence), whole(each.sequence - each.version), short(each.loss),
    short(each.plain_loss), whole(each.effective_window), changed];
  // On small screens a row is a card, and each of its cells has its own label.
  made.append(name, ...cells.map((text, i) => element("td", text, { "data-label": titles[i + 1] })), judge);
  if (each.error) made.append(element("td", each.error, { class: "bad" }));
  return made;
}

const refresh = oneAtATime(async () => {
  const { metrics } = await ask("GET", "/v1/metrics");
  problem(null);
  // Links keep the keyboard's focus while nothing has changed.
  const text = JSON.stringify(metrics);
  if (text === refresh.last) return;
  refresh.last = text;
  const focused = document.activeElement?.getAttribute("href");
  find("metrics").replaceChildren(...metrics.map(row));
  if (focused) find("metrics").querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
  find("none").hidden = metrics.length > 0;
});

refresh();
setInterval(refresh, 2000);
