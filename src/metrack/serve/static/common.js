// What all pages use: requests, words, numbers.

export class Refused extends Error {}

export function ask(method, path, body) {
  return send(method, path, body === undefined ? undefined : JSON.stringify(body), "application/json");
}

export async function send(method, path, body, type) {
  const options = { method, headers: {} };
  if (body !== undefined) {
    options.headers["content-type"] = type;
    options.body = body;
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

export const percent = (value) => (value === null ? "–" : `${Math.round(100 * value)} %`);

// Judgements since midnight, of counts by hours since 1970.
export function today(hours) {
  const midnight = new Date().setHours(0, 0, 0, 0) / 3600000;
  return hours.reduce((sum, [hour, n]) => sum + (hour >= Math.floor(midnight) ? n : 0), 0);
}

export function ago(seconds) {
  const passed = Math.max(0, Date.now() / 1000 - seconds);
  if (passed < 90) return "just now";
  if (passed < 5400) return `${Math.round(passed / 60)} min ago`;
  if (passed < 129600) return `${Math.round(passed / 3600)} h ago`;
  return `${Math.round(passed / 86400)} days ago`;
}

// The hour alone for today, else the day with it.
export function moment(seconds) {
  const at = new Date(1000 * seconds), hour = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const isToday = at.toDateString() === new Date().toDateString();
  return isToday ? hour : `${at.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: at.getFullYear() === new Date().getFullYear() ? undefined : "numeric" })}, ${hour}`;
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
