// Keyboard shortcuts that leave typing alone.

/** @param {EventTarget | null} target @returns {boolean} whether keys typed there are text */
export function typing(target) {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable) return true;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/**
 * Calls the handler named by the key, as `event.key` spells it; `Mod+Enter` is Ctrl or Cmd with Enter and works in
 * fields too, all others only outside of them.
 * @param {Record<string, (event: KeyboardEvent) => void>} handlers
 */
export function onKeys(handlers) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const mod = event.ctrlKey || event.metaKey;
    const handler = handlers[mod ? `Mod+${event.key}` : event.key];
    if (!handler || event.altKey || (!mod && typing(event.target))) return;
    event.preventDefault();
    handler(event);
  });
}
