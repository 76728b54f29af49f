// One line at the foot of the window for what just happened, read out by screen readers.
import { el } from "./dom.js";

/** @type {HTMLElement | null} */
let region = null;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/**
 * Shows a message; plain ones go after four seconds, errors stay until dismissed.
 * @param {string} message
 * @param {"info" | "error"} [kind]
 */
export function notice(message, kind = "info") {
  region ??= document.querySelector("[data-notice]");
  if (!region) return;
  clearTimeout(timer);
  const close = el("button", { type: "button", class: "quiet", "aria-label": "Dismiss", onclick: dismiss }, "×");
  region.replaceChildren(el("span", {}, message), close);
  region.dataset.kind = kind;
  region.hidden = false;
  if (kind === "info") timer = setTimeout(dismiss, 4000);
}

function dismiss() {
  if (region) region.hidden = true;
}
