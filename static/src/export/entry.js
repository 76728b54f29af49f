// The page of an exported trace: the trace page over the data of its own file.
import { need } from "../lib/dom.js";
import { typing } from "../lib/keys.js";
import { notice } from "../lib/notice.js";
import { startPage } from "../lib/page.js";
import { wireKeys } from "../trace/keys.js";
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

startPage();
const backend = new Embedded({ worker: part("export-worker"), archive: part("export-archive"), extra: part("export-extra") });
const page = new TracePage(backend, fragmentPlace);
wireKeys(page, typing);
page.load().catch((error) => notice(error instanceof Error ? error.message : String(error), "error"));
