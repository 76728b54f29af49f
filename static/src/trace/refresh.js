// Takes the parts that the server renders from a fresh copy of the page, once a compilation has brought something new.
import { ApiError } from "../lib/api.js";
import { notice } from "../lib/notice.js";

const parts = ["list", "facts", "failure", "sheets", "progress"];

/** @param {import("./page.js").TracePage} page */
export async function refresh(page) {
  try {
    const response = await fetch(location.pathname + location.search, { headers: { accept: "text/html" } });
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const id of parts) swap(id, fresh);
    swapElsewhere(fresh, ".tablist sup", "#tab-diagnostics");
    swapActions(fresh);
    const main = fresh.getElementById("main");
    page.main.dataset.status = main?.dataset.status ?? "";
    if (!main?.hasAttribute("data-ready")) return;
    page.main.setAttribute("data-ready", "");
    page.useFallback(main.dataset.address ?? null);
    await page.load();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    notice(error.message, "error");
  }
}

/** @param {string} id @param {Document} fresh */
function swap(id, fresh) {
  const [old, next] = [document.getElementById(id), fresh.getElementById(id)];
  if (!old || !next) return;
  old.replaceChildren(...next.childNodes);
  old.hidden = next.hidden;
}

/** @param {Document} fresh @param {string} what @param {string} where */
function swapElsewhere(fresh, what, where) {
  document.querySelector(what)?.remove();
  const found = fresh.querySelector(what);
  if (found) document.querySelector(where)?.append(found);
}

/** @param {Document} fresh */
function swapActions(fresh) {
  const [tag, link] = [fresh.querySelector(".crumb .tag"), fresh.getElementById("export")];
  if (tag && !document.querySelector(".crumb .tag")) document.querySelector(".crumb")?.append(tag);
  if (link && !document.getElementById("export")) document.querySelector(".acts")?.prepend(link);
}
