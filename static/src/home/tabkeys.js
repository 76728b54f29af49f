// Keys and clicks of a row of tabs: arrows, Home and End move, F2 renames, Delete closes.

/**
 * @param {HTMLElement} host
 * @param {{select: (name: string) => void, close: (name: string) => void, rename: (name: string) => void}} on
 */
export function tabKeys(host, on) {
  host.addEventListener("click", (event) => {
    const name = nameOf(event);
    if (name !== null) on.select(name);
  });
  host.addEventListener("dblclick", (event) => {
    const name = nameOf(event);
    if (name !== null) on.rename(name);
  });
  host.addEventListener("keydown", (event) => {
    const name = nameOf(event);
    if (name === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const names = [...host.querySelectorAll("[data-file]")].map((tab) => (tab instanceof HTMLElement && tab.dataset.file) || "");
    const next = { ArrowLeft: names.indexOf(name) - 1, ArrowRight: names.indexOf(name) + 1, Home: 0, End: names.length - 1 }[event.key];
    if (next !== undefined) on.select(names[(next + names.length) % names.length]);
    else if (event.key === "Delete") on.close(name);
    else if (event.key === "F2") on.rename(name);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

/** @param {Event} event @returns {string | null} */
function nameOf(event) {
  const tab = event.target instanceof Element ? event.target.closest("[data-file]") : null;
  return tab instanceof HTMLElement ? (tab.dataset.file ?? null) : null;
}
