// The page of an exported trace: the trace page over the data of its own file.
import { el, need } from "../lib/dom.js";
import { typing } from "../lib/keys.js";
import { notice } from "../lib/notice.js";
import { startPage } from "../lib/page.js";
import { wireKeys } from "../trace/keys.js";
import { Menu, share } from "../trace/menu.js";
import { TracePage } from "../trace/page.js";
import { Embedded } from "./embedded.js";
import { fragmentPlace } from "./place.js";

/** @param {string} id @returns {string} */
function part(id) {
  const element = need(`#${id}`, HTMLScriptElement);
  const text = element.text;
  element.remove();
  return text;
}

/** Saves the trace file that this page carries. */
async function save() {
  const { kernel, target } = page.model.manifest ?? {};
  const url = URL.createObjectURL(new Blob([await backend.file()], { type: "application/octet-stream" }));
  el("a", { href: url, download: `${kernel?.name.replace(/\W+/g, "_") || "trace"}-${target?.arch}.loupe` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

startPage();
// LLVM's passes are there where somebody had asked for them.
const archives = ["export-archive", "export-added"].filter((id) => document.getElementById(id)).map(part);
const backend = new Embedded({ worker: part("export-worker"), archives, extra: part("export-extra") });
const page = new TracePage(backend, fragmentPlace);
const menu = new Menu({ share, file: save });
wireKeys(page, typing, menu);
page.load().catch((error) => notice(error instanceof Error ? error.message : String(error), "error"));
