// Imports a .loupe file: chosen with the button, or dropped anywhere on the page.
import { need } from "../lib/dom.js";
import { notice } from "../lib/notice.js";

const suffix = ".loupe";

/** Wires the button and the page. */
export function wireImport() {
  const button = need("[data-import]", HTMLButtonElement);
  const field = need("[data-import-file]", HTMLInputElement);
  button.addEventListener("click", () => field.click());
  field.addEventListener("change", () => {
    const file = field.files?.[0];
    field.value = "";
    if (file) void upload(file, button);
  });
  // Other files that are dropped are not this part's; the editor would take the text of any.
  document.addEventListener("dragover", (event) => {
    if (Array.from(event.dataTransfer?.items ?? []).some((item) => item.kind === "file")) event.preventDefault();
  });
  document.addEventListener("drop", (event) => {
    const file = Array.from(event.dataTransfer?.files ?? []).find(({ name }) => name.endsWith(suffix));
    if (!file) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    void upload(file, button);
  }, true);
  // What no part of the page took would be opened in its place.
  document.addEventListener("drop", (event) => {
    if (event.defaultPrevented || !event.dataTransfer?.files.length) return;
    event.preventDefault();
    notice("Drop Python files, folders and zips on the editor; a .loupe file is taken anywhere.");
  });
}

/** Sends a file and goes to its page. @param {File} file @param {HTMLButtonElement} button */
async function upload(file, button) {
  button.disabled = true;
  try {
    const headers = { "content-type": "application/octet-stream", accept: "application/json" };
    const response = await fetch("/api/v1/traces", { method: "POST", headers, body: file }).catch(() => null);
    const data = await response?.json().catch(() => null);
    if (response?.ok && data) location.assign(data.url);
    else notice(`${file.name}: ${data?.error?.message ?? "Loupe does not answer. Is `loupe serve` still running?"}`, "error");
  } finally {
    button.disabled = false;
  }
}
