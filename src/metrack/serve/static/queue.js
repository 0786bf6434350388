// Pairs to judge, asked for some at a time; and answers, sent until they are there.

import { api, ask, problem } from "/static/common.js";

const AHEAD = 5; // pairs that are asked for at a time ...
const LOW = 2; // ... when there are no more left, so that nobody waits for them

export const newId = () => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
const key = (pair) => [pair.a.id, pair.b.id].sort().join("\u0000");

export class Queue {
  constructor(judge) {
    this.judge = judge;
    this.pairs = [];
    this.fetching = null;
    this.progress = null; // how far judging has come, when it was last asked
  }

  // Neither what is shown, waits or was just answered: the server does not know of these yet.
  async next(taken) {
    if (this.pairs.length <= LOW) {
      this.fetching ??= this.more(taken).finally(() => { this.fetching = null; });
      if (this.pairs.length) this.fetching.catch(() => {}); // it is asked again when there are none
      else await this.fetching;
    }
    return this.pairs.shift() ?? null;
  }

  async more(taken) {
    const { pairs, progress } = await ask("POST", api("/suggest"), { n: AHEAD, judge: this.judge() });
    this.progress = progress;
    const known = new Set([...taken(), ...this.pairs].filter(Boolean).map(key));
    const found = pairs.filter((pair) => !known.has(key(pair)));
    for (const pair of found) if (Math.random() < 0.5) [pair.a, pair.b] = [pair.b, pair.a]; // no side is preferred
    this.pairs.push(...found);
  }
}

export const bodyOf = ({ pair, y, id, by }) => ({ pairs: [{ a: pair.a.id, b: pair.b.id, y, id, judge: by }] });

// Sent again until it is there: the server knows it by its id.
export async function sendAnswer(answer) {
  for (let wait = 500; ; wait = Math.min(2 * wait, 10000)) {
    try {
      await ask("POST", api("/feedback"), bodyOf(answer));
      problem(null);
      return;
    } catch (error) {
      problem(error);
      await new Promise((done) => setTimeout(done, wait));
    }
  }
}
