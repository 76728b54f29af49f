// Takes the parts that the server renders from a fresh copy of the page, once a compilation has brought something new.
import { ApiError } from "../lib/api.js";
import { notice } from "../lib/notice.js";

const parts = ["list", "facts", "failure", "source-failure", "source-files", "sheets", "progress"];

/** @param {import("./page.js").TracePage} page */
export async function refresh(page) {
  try {
    const response = await fetch(location.pathname + location.search, { headers: { accept: "text/html" } });
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const id of parts) swap(id, fresh);
    document.querySelector(".crumb")?.replaceWith(fresh.querySelector(".crumb") ?? "");
    document.title = fresh.title;
    const said = fresh.querySelector("#tab-diagnostics");
    if (said) document.getElementById("tab-diagnostics")?.replaceChildren(...said.childNodes);
    const link = fresh.getElementById("export");
    if (link && !document.getElementById("export")) document.querySelector(".acts")?.prepend(link);
    const main = fresh.getElementById("main");
    page.main.dataset.status = main?.dataset.status ?? "";
    if (!main?.hasAttribute("data-ready")) return;
    page.useFallback(main.dataset.address ?? null);
    await page.load();
    page.main.setAttribute("data-ready", "");
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
