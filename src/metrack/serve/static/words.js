// What learners, memories and changes are called in plain words.

import { moment, percent, whole } from "/static/common.js";

const WAYS = {
  target: "aims at a distance for each pair, one pair after another",
  gradient: "goes over many pairs again and again",
  moment: "compares how far alike pairs spread with how far others do",
  additive: "adds up what each direction tells",
  margin: "keeps alike and other pairs apart by a margin",
  plain: "plain distance, as if nothing were learned",
};

export const way = (kind) => WAYS[kind] ?? kind;

// How many of the last judgements count: a sentence.
export function backwards(pairs, experts, weights) {
  if (!pairs) return "Nothing was judged so far.";
  if (!experts.length) return "At all judgements, the latest a little more than earlier ones.";
  const share = (from, to) => experts.reduce((sum, each, j) => sum + ((each.memory ?? Infinity) > from && (each.memory ?? Infinity) <= to ? weights[j] : 0), 0);
  const parts = [
    [share(0, 100), "the last hundred judgements"],
    [share(100, 2000), "the last two thousand"],
    [share(2000, Infinity), "all judgements so far"],
  ].sort((a, b) => b[0] - a[0]).filter(([part]) => part >= 0.05);
  return `Mostly at ${parts.map(([part, text]) => `${text} (${percent(part)})`).join(", then at ")}.`;
}

// Shares of the ways in which it decides, the largest first.
export function ways(experts, weights) {
  const found = new Map();
  experts.forEach((each, j) => found.set(each.kind, (found.get(each.kind) ?? 0) + weights[j]));
  return [...found].filter(([, share]) => share >= 0.01).sort((a, b) => b[1] - a[1]);
}

const list = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`);

// A change as a sentence.
export function change({ pair, time, moved }) {
  const when = time ? `At ${moment(time)}` : `At judgement ${whole(pair)}`;
  const told = (some) => list(some.slice(0, 3).map((each) => each.feature));
  const more = moved.filter((each) => each.by > 0), less = moved.filter((each) => each.by < 0);
  const parts = [];
  if (more.length) parts.push(`${told(more)} ${more.length > 1 ? "count" : "counts"} more`);
  if (less.length) parts.push(`${told(less)} less`);
  const how = parts.length ? `: ${parts.join(", ")}` : "";
  return `${when} what counts as alike changed${how}.`;
}
