// What all pages use: requests, words, numbers.

export class Refused extends Error {}

export async function ask(method, path, body) {
  const options = { method, headers: {} };
  if (body !== undefined) {
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(path, options);
  if (answer.status === 401) location.reload(); // the session is over: the form comes up
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({ detail: answer.statusText }));
    throw new Refused(said.detail);
  }
  return answer.json();
}

export const metric = decodeURIComponent(location.pathname.split("/")[2] ?? "");
export const api = (what = "") => `/v1/metrics/${encodeURIComponent(metric)}${what}`;
export const find = (id) => document.getElementById(id);

export function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

export function problem(error) {
  const shown = find("problem");
  shown.hidden = error === null;
  shown.textContent = error === null ? "" : error.message;
}

export const whole = (value) => (value === null ? "–" : Math.round(value).toLocaleString("en"));
export const counted = (value, thing) => `${whole(value)} ${thing}${Math.round(value) === 1 ? "" : "s"}`;
export const short = (value) => (value === null ? "–" : Number(value.toPrecision(3)).toString());

// Calls that come while one is under way become one more, when it is done.
export function oneAtATime(work) {
  let running = false, again = false;
  return async function run() {
    if (running) { again = true; return; }
    running = true;
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Refused || error instanceof TypeError)) throw error;
      problem(error);
    } finally {
      running = false;
    }
    if (again) { again = false; run(); }
  };
}
