// Keeps a part of a server-rendered page fresh: fetches the page again and swaps the part that is marked
// `data-live="name"`, as long as something in it is queued or running.
import { refreshTimes } from "./page.js";

/**
 * @param {string} name
 * @param {(part: HTMLElement) => void} [onSwap] called for each new part, and once at the start
 */
export function followLive(name, onSwap) {
  const selector = `[data-live="${CSS.escape(name)}"]`;
  const first = document.querySelector(selector);
  if (!(first instanceof HTMLElement)) return;
  onSwap?.(first);
  /** @type {HTMLElement} */
  let part = first;
  let html = part.innerHTML;
  let wait = 500;

  const next = () => {
    if (part.querySelector('[data-state="running"], [data-state="queued"]')) setTimeout(refresh, wait);
  };
  const refresh = async () => {
    if (document.hidden) return void document.addEventListener("visibilitychange", refresh, { once: true });
    const fresh = await fetchPart(selector);
    wait = fresh ? 500 : Math.min(wait * 2, 10_000);
    if (fresh && fresh.innerHTML !== html) {
      html = fresh.innerHTML;
      const focused = part.contains(document.activeElement) ? document.activeElement?.getAttribute("href") : null;
      part.replaceWith(fresh);
      part = fresh;
      const again = focused && fresh.querySelector(`[href="${CSS.escape(focused)}"]`);
      if (again instanceof HTMLElement) again.focus();
      refreshTimes();
      onSwap?.(fresh);
    }
    next();
  };
  next();
  addEventListener("pageshow", (event) => {
    if (event.persisted) void refresh();
  });
}

/** @param {string} selector @returns {Promise<HTMLElement | null>} null where the server does not answer */
async function fetchPart(selector) {
  try {
    const response = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!response.ok) return null;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const found = page.querySelector(selector);
    return found instanceof HTMLElement ? document.importNode(found, true) : null;
  } catch {
    return null;
  }
}
