// What comes to a finished trace on demand: asks for it, follows its progress, and takes the list that has it.
import { api, ApiError } from "../lib/api.js";
import { el } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { notice } from "../lib/notice.js";
import { refresh } from "./refresh.js";

/** @typedef {import("./page.js").TracePage} TracePage */

/** @type {Map<string, EventSource>} */
const following = new Map();

/** Wires the buttons of the pass list, also those of a list that takes its place. @param {TracePage} page @param {string} base */
export function wireAddenda(page, base) {
  const { list } = page.list;
  list.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-ask]") : null;
    if (button instanceof HTMLButtonElement) void ask(page, base, button);
  });
  for (const part of list.querySelectorAll('[data-addendum][data-status="queued"], [data-addendum][data-status="running"]')) {
    if (part instanceof HTMLElement) follow(page, base, part.dataset.addendum ?? "");
  }
}

/** @param {TracePage} page @param {string} base @param {HTMLButtonElement} button */
async function ask(page, base, button) {
  const kind = button.dataset.ask ?? "";
  button.disabled = true;
  try {
    const { status } = await api(`${base}/${kind}`, { body: {} });
    if (status === "done") return await refresh(page);
    say(kind, "queued", "waiting for a worker");
    follow(page, base, kind);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    button.disabled = false;
    notice(error.message, "error");
  }
}

/** @param {TracePage} page @param {string} base @param {string} kind */
function follow(page, base, kind) {
  if (following.has(kind)) return;
  const source = new EventSource(`${base}/${kind}/events`);
  following.set(kind, source);
  let passes = 0;
  const end = () => {
    source.close();
    following.delete(kind);
  };
  source.addEventListener("state", (event) => {
    const { status } = JSON.parse(event.data);
    say(kind, status, status === "queued" ? "waiting for a worker" : "compiling once more");
  });
  source.addEventListener("pass", (event) => {
    const { name } = JSON.parse(event.data);
    passes += 1;
    say(kind, "running", `${plural(passes, "pass", "passes")}: ${name}`);
  });
  source.addEventListener("run", (event) => {
    const { number, of } = JSON.parse(event.data);
    say(kind, "running", `run ${number} of ${of}`);
  });
  source.addEventListener("done", async (event) => {
    end();
    const { status, message } = JSON.parse(event.data);
    await refresh(page);
    if (status === "failed") notice(message, "error");
    else showFirst(page, kind);
  });
  source.addEventListener("error", () => {
    if (source.readyState !== EventSource.CLOSED) return;
    end();
    notice("The server ended the progress of this page. Reload it to see how far the second compilation is.", "error");
  });
}

/** Brings what has come into view. @param {TracePage} page @param {string} kind */
function showFirst(page, kind) {
  if (kind !== "llvm-passes") return;
  const heading = page.list.list.querySelector('section[data-stage="llvm-ir"]');
  heading?.scrollIntoView({ block: "start" });
}

/** @param {string} kind @param {string} state @param {string} words */
function say(kind, state, words) {
  const said = document.querySelector(`[data-addendum="${CSS.escape(kind)}"] [data-said]`);
  said?.replaceChildren(el("span", { class: "state", "data-state": state }, words));
}
