// How far judging has come, in words, and on a bar.

import { counted, percent, whole } from "/static/common.js";

const FEW = 20; // answers before which nothing can be said
const LITTLE = 0.1; // share of what is called alike that may still change at the end

// Sentences for whoever judges.
export function said({ answers, unsure, question, auc, ahead, stop }) {
  const parts = [`${counted(answers, "answer")} so far${unsure ? `, and ${whole(unsure)} unsure` : ""}.`];
  if (question > 1) parts.push("The question has changed since judging began: what was answered before counts no more.");
  if (auc !== null) parts.push(`Of an alike pair and another one, it tells which is which ${percent(auc)} of the time.`);
  if (stop) parts.push(`You may stop: as many answers again would change no more than ${percent(ahead)} of what it calls alike.`);
  else if (ahead !== null) parts.push(`Go on: as many answers again may change ${percent(Math.ceil(100 * ahead) / 100)} of what it calls alike.`);
  else if (answers < FEW) parts.push(`${whole(FEW - answers)} more, and it can be said how well it does.`);
  return parts.join(" ");
}

// From nothing to the point at which one may stop.
export function part({ answers, ahead, stop }) {
  if (stop) return 1;
  return ahead === null ? Math.min(0.2, (0.2 * answers) / FEW) : 0.2 + 0.8 * Math.min(0.95, LITTLE / ahead);
}
