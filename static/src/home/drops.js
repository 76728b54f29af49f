// Files, folders and zips that are dropped on the editor or chosen with the file button.
import { api } from "../lib/api.js";

/**
 * @typedef {object} Opened
 * @property {Record<string, string>} files
 * @property {string} entry
 * @property {boolean} whole whether it is a package of its own, a folder or a zip
 * @property {number} skipped files that are no Python
 */

const mostFiles = 256;
const mostBytes = 1 << 20;

/**
 * @param {HTMLElement} host
 * @param {(reading: Promise<Opened>) => void} take
 */
export function onDrop(host, take) {
  /** @param {DragEvent} event */
  const carries = (event) => event.dataTransfer?.types.includes("Files") ?? false;
  for (const kind of /** @type {const} */ (["dragenter", "dragover"])) {
    host.addEventListener(kind, (event) => {
      if (!carries(event)) return;
      event.preventDefault();
      host.dataset.drop = "";
    });
  }
  host.addEventListener("dragleave", (event) => {
    if (!(event.relatedTarget instanceof Node) || !host.contains(event.relatedTarget)) delete host.dataset.drop;
  });
  // Also where another part of the page takes the drop.
  addEventListener("drop", () => delete host.dataset.drop, true);
  // Before the editor, which would paste the files' text.
  host.addEventListener(
    "drop",
    (event) => {
      if (!carries(event) || !event.dataTransfer) return;
      event.preventDefault();
      event.stopPropagation();
      const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
      take(entries.some((entry) => entry.isDirectory) ? readFolders(entries) : readFiles([...event.dataTransfer.files]));
    },
    true,
  );
}

/** @param {File[]} list @returns {Promise<Opened>} */
export async function readFiles(list) {
  const zip = list.find((file) => file.name.endsWith(".zip"));
  if (zip) return readZip(zip);
  return opened(list.map((file) => [file.name, file]), false);
}

/** @param {File} zip @returns {Promise<Opened>} */
async function readZip(zip) {
  const data = await api("/packages", { data: new Blob([zip], { type: "application/zip" }) });
  return { files: data.files, entry: data.candidates[0] ?? Object.keys(data.files)[0], whole: true, skipped: data.skipped_count };
}

/** @param {FileSystemEntry[]} entries @returns {Promise<Opened>} */
async function readFolders(entries) {
  /** @type {[string, File][]} */
  const found = [];
  const waiting = [...entries];
  for (let entry = waiting.shift(); entry; entry = waiting.shift()) {
    if (entry.name.startsWith(".") || entry.name === "__pycache__" || entry.name === "node_modules") continue;
    if (entry instanceof FileSystemDirectoryEntry) waiting.push(...(await list(entry)));
    else if (entry instanceof FileSystemFileEntry) found.push([entry.fullPath.replace(/^\//, ""), await fileOf(entry)]);
    if (found.filter(([name]) => name.endsWith(".py")).length > mostFiles) break;
  }
  return opened(found, true);
}

/** @param {FileSystemDirectoryEntry} folder @returns {Promise<FileSystemEntry[]>} all of it: a reader gives some at a time */
async function list(folder) {
  const reader = folder.createReader();
  /** @type {FileSystemEntry[]} */
  const all = [];
  for (;;) {
    /** @type {FileSystemEntry[]} */
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return all;
    all.push(...some);
  }
}

/** @param {FileSystemFileEntry} entry @returns {Promise<File>} */
const fileOf = (entry) => new Promise((resolve, reject) => entry.file(resolve, reject));

/** @param {[string, File][]} list @param {boolean} whole @returns {Promise<Opened>} */
async function opened(list, whole) {
  const sources = list.filter(([name]) => name.endsWith(".py"));
  if (!sources.length) throw new Error("There is no Python file among them.");
  if (sources.length > mostFiles) throw new Error(`There are more than ${mostFiles} Python files; a package has at most that many.`);
  const large = sources.find(([, file]) => file.size > mostBytes);
  if (large) throw new Error(`${large[0]} has more than 1 MB.`);
  const texts = await Promise.all(sources.map(async ([name, file]) => [name, (await file.text()).replaceAll("\r\n", "\n")]));
  const files = Object.fromEntries(texts);
  return { files, entry: likelyEntry(files), whole, skipped: list.length - sources.length };
}

/** The rule of pipelines/kernels/package.py: a main block first, then launches of its own kernels, then of others', then kernels. @param {Record<string, string>} files */
function likelyEntry(files) {
  const kernel = /^[ \t]*@(?:\w+\.)*(?:jit|autotune)\b/m;
  const defined = new Set(Object.values(files).filter((text) => kernel.test(text)).flatMap((text) => Array.from(text.matchAll(/^[ \t]*def\s+(\w+)/gm), ([, name]) => name)));
  /** @type {((text: string) => boolean)[]} */
  const rules = [
    (text) => /^if\s+__name__\s*==\s*["']__main__["']/m.test(text),
    (text) => kernel.test(text) && text.includes("]("),
    (text) => text.includes("](") && Array.from(text.matchAll(/\b(\w+)\[/g)).some(([, name]) => defined.has(name)),
    (text) => kernel.test(text),
  ];
  const names = Object.keys(files).sort();
  for (const rule of rules) {
    const found = names.find((name) => rule(files[name]));
    if (found) return found;
  }
  return names[0];
}
