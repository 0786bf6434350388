// Answers looked at again: one's own, to be corrected; and those on which judges disagree.

import { ago, api, ask, counted, element, find, problem } from "/static/common.js";
import { showPair } from "/static/pairs.js";
import { newId } from "/static/queue.js";

const AT_A_TIME = 10;
const WORDS = new Map([[1, "alike"], [-1, "not alike"], [null, "unsure"]]);

function buttons(name, chosen, choose) {
  const row = element("div", undefined, { class: "answers" });
  for (const [y, word] of WORDS) {
    const button = element("button", word[0].toUpperCase() + word.slice(1), { type: "button", "aria-pressed": String(y === chosen), "aria-label": `${word}: ${name}` });
    button.addEventListener("click", () => choose(y));
    row.append(button);
  }
  return row;
}

const correct = (sequence, y, judge) => ask("POST", api("/corrections"), { sequence, y, judge, id: newId() });

// A card for a pair: both items, what was said, and buttons.
function card(pair, told, chosen, choose) {
  const made = element("article", undefined, { class: "panel" });
  const items = element("div"), said = element("p", told, { class: "soft", role: "status" });
  showPair(items, pair);
  const draw = (now) => {
    made.replaceChildren(said, items, buttons(`${pair.a.id} and ${pair.b.id}`, now, async (y) => {
      if (y === now) return;
      try {
        said.textContent = await choose(y);
        problem(null);
        draw(y);
        made.querySelector('[aria-pressed="true"]').focus();
      } catch (error) {
        problem(error);
      }
    }));
  };
  draw(chosen);
  return made;
}

export async function lookAgain(judge, before) {
  const asked = new URLSearchParams({ judge, n: AT_A_TIME, ...(before ? { before } : {}) });
  const { answers } = await ask("GET", `${api("/answers")}?${asked}`);
  const cards = answers.map((each) => {
    let at = each.sequence;
    return card(each, `You said ${WORDS.get(each.y)}, ${ago(each.time)}.`, each.y, async (y) => {
      at = (await correct(at, y, judge)).sequence;
      return `Now ${WORDS.get(y)}; it is learned in the place of your first answer.`;
    });
  });
  find("review-note").textContent = answers.length || before
    ? "Your answers, the last first. What you correct is learned anew."
    : `Nothing was answered under the name ${judge}.`;
  if (before) find("answers").append(...cards);
  else find("answers").replaceChildren(...cards);
  find("earlier").hidden = answers.length < AT_A_TIME;
  find("earlier").onclick = () => lookAgain(judge, answers[answers.length - 1].sequence);
}

export async function settle(judge) {
  const { pairs, total } = await ask("GET", api("/disagreements?n=20"));
  find("review-note").textContent = total
    ? `${counted(total, "pair")} that some call alike and others not. Say what is right: it takes the place of the answers that differ.`
    : "Nobody disagrees: there is nothing to settle.";
  find("answers").replaceChildren(...pairs.map((pair) => {
    let standing = pair.answers.map(({ sequence, y }) => ({ sequence, y }));
    const told = pair.answers.map((each) => `${each.judge}: ${WORDS.get(each.y)}`).join("; ");
    return card(pair, told, undefined, async (y) => {
      const next = [];
      for (const each of standing) {
        next.push(each.y === y ? each : { sequence: (await correct(each.sequence, y, judge)).sequence, y });
      }
      standing = next;
      return `${told}. Settled: ${WORDS.get(y)}.`;
    });
  }));
  find("earlier").hidden = true;
}
