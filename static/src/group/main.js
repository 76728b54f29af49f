// The group page: live while traces compile, and a switch that leaves only the rows that differ.
import { need } from "../lib/dom.js";
import { onKeys } from "../lib/keys.js";
import { followLive } from "../lib/live.js";

const toggle = need("[data-only]", HTMLAnchorElement);

/** @returns {boolean} */
function only() {
  return new URLSearchParams(location.search).get("only") === "differences";
}

function show() {
  const on = only();
  toggle.setAttribute("aria-checked", String(on));
  toggle.href = on ? location.pathname : `${location.pathname}?only=differences`;
  document.querySelector(".compare")?.classList.toggle("only", on);
}

function flip() {
  history.replaceState(null, "", only() ? location.pathname : `${location.pathname}?only=differences`);
  show();
}

toggle.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  flip();
});
toggle.addEventListener("keydown", (event) => {
  if (event.key !== " ") return;
  event.preventDefault();
  flip();
});
onKeys({ d: flip });
followLive("group", (part) => {
  show();
  // There is something to save once a trace has ended.
  if (part.querySelector('[data-state="ok"], [data-state="failed"]')) need("[data-zip]", HTMLAnchorElement).hidden = false;
});
