// What every page does at its start.
import { startTheme } from "./theme.js";
import { ago } from "./format.js";

/** Wires the parts that base.html gives each page. */
export function startPage() {
  startTheme();
  refreshTimes();
  setInterval(refreshTimes, 30_000);
}

/** Words every `<time datetime data-ago>` relative to now. */
export function refreshTimes() {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    if (time instanceof HTMLTimeElement) time.textContent = ago(time.dateTime);
  }
}
