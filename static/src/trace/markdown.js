// What is in view as Markdown, which the server writes.
import { plural } from "../lib/format.js";
import { notice } from "../lib/notice.js";
import { copy } from "./menu.js";

/**
 * @typedef {object} Shown
 * @property {import("./model.js").Entry} entry
 * @property {import("./model.js").Entry | null} against of a diff
 * @property {[number, number] | null} lines marked
 * @property {boolean} locations
 */

/** @param {string} base the trace's API @param {Shown | null} shown */
function address(base, shown) {
  const query = new URLSearchParams();
  if (shown?.against) query.set("diff", `${shown.against.address}..${shown.entry.address}`);
  else if (shown) query.set("item", shown.entry.address);
  if (shown?.lines) query.set("lines", shown.lines.join("-"));
  if (shown?.locations) query.set("locations", "1");
  return `${base}/export.md?${query}`;
}

/** @param {Shown | null} shown */
function words(shown) {
  if (!shown) return "what the trace is";
  const { entry, against, lines } = shown;
  if (against) return `the diff of ${against.address} and ${entry.address}`;
  if (!lines) return entry.address;
  return `${plural(lines[1] - lines[0] + 1, "marked line")} of ${entry.address}`;
}

/** Brings the menu's words and link in step with the view. @param {string} base @param {Shown | null} shown */
export function tellShown(base, shown) {
  const label = document.querySelector("#export [data-shown]");
  if (label) label.textContent = words(shown);
  document.querySelector("#export [data-markdown]")?.setAttribute("href", address(base, shown));
}

/** @param {string} base @param {Shown | null} shown */
export async function copyMarkdown(base, shown) {
  const response = await fetch(address(base, shown)).catch(() => null);
  if (!response?.ok) notice("The server did not write this as Markdown. Is `loupe serve` still running?", "error");
  else if (await copy(await response.text())) notice(`Copied as Markdown: ${words(shown)}.`);
  else notice("The browser does not let pages copy here; save the Markdown file instead.", "error");
}
