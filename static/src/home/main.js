// The home page: a source on the left, what to compile it for on the right, one button.
import { ApiError, api } from "../lib/api.js";
import { need, pageData } from "../lib/dom.js";
import { onKeys } from "../lib/keys.js";
import { followLive } from "../lib/live.js";
import { notice } from "../lib/notice.js";
import { SourceEditor } from "./editor.js";
import { Faults } from "./faults.js";
import { wireImport } from "./import.js";
import { Kernels } from "./kernels.js";
import { Options, Targets } from "./options.js";
import { Signature } from "./signature.js";
import { fromTrace, readDraft, saveDraft } from "./sources.js";

/** @typedef {import("./sources.js").Start} Start */
/** @typedef {import("./state.js").Example} Example */

/** @type {{examples: Example[], targets: import("./state.js").Offer}} */
const data = pageData("home-data");
const form = need("[data-form]", HTMLFormElement);
const button = need("[data-submit]", HTMLButtonElement, form);
const summary = need("[data-count]", HTMLElement, form);

/** Whether the text in the editor is the user's own, so worth keeping. */
let own = false;
const editor = new SourceEditor(need("[data-source]", HTMLTextAreaElement, form), (source) => {
  if (own) keep(source);
  kernels.later(source);
});
const faults = new Faults(form, editor);
const options = new Options(form, data.targets.backends);
const targets = new Targets(form, () => describe());
const table = need("[data-signature]", HTMLElement, form);
const signature = new Signature(table);
const kernels = new Kernels(
  {
    select: need("[data-kernel]", HTMLSelectElement, form),
    origin: need("[data-origin]", HTMLElement, form),
    hint: need("[data-origin-hint]", HTMLElement, form),
    table,
  },
  signature,
  faults,
  () => describe(),
);

/** An edited source is no longer the example's, so a reload brings the draft. @param {string} source */
function keep(source) {
  saveDraft(source);
  if (location.search) history.replaceState(null, "", "/");
  markExample(null);
}

/** @param {string | null} name */
function markExample(name) {
  for (const card of document.querySelectorAll("[data-example]")) {
    if (!(card instanceof HTMLElement)) continue;
    if (card.dataset.example === name) card.setAttribute("aria-current", "true");
    else card.removeAttribute("aria-current");
  }
}

function describe() {
  summary.textContent = kernels.describe(targets.chosen.length);
  const hint = form.querySelector("[data-options-hint]");
  if (hint instanceof HTMLElement) hint.hidden = kernels.given;
  options.use(targets.backends);
}

/** Puts a source with its settings on the page. @param {Start} start */
async function open(start) {
  own = false;
  editor.replace(start.source);
  own = true;
  kernels.origin = start.args ? "given" : "launch";
  signature.fill(start.args ?? {});
  if (start.targets?.length) targets.fill(start.targets);
  options.use(targets.backends);
  if (start.options) options.fill(start.options);
  faults.clear();
  await kernels.discover(start.source, start.kernel ?? null);
}

/** @param {string} name */
async function openExample(name) {
  const example = data.examples.find((item) => item.name === name);
  if (!example) return notice(`There is no example ${name}. The gallery below has all of them.`, "error");
  await open({ source: example.source, targets: example.targets ?? null });
  markExample(name);
}

/** Opens what the address asks for; without a wish, the draft, or the kernel that the server put there. */
async function openAddress() {
  const query = new URLSearchParams(location.search);
  const example = query.get("example");
  const trace = query.get("from");
  if (example) return openExample(example);
  if (trace) {
    return fromTrace(trace, data.targets.options).then(open, (error) => notice(error.message, "error"));
  }
  return open({ source: readDraft() ?? editor.source });
}

/** @param {string} source */
async function reopen(source) {
  await open({ source });
  markExample(new URLSearchParams(location.search).get("example"));
}

/** @returns {import("./state.js").CompileRequest} */
function request() {
  const kernel = kernels.kernel?.name;
  const given = kernels.given ? signature.read() : {};
  const set = options.read();
  return { source: editor.source, ...(kernel && { kernel }), ...given, targets: targets.read(), ...(Object.keys(set).length && { options: set }) };
}

/** @param {boolean} on */
function sending(on) {
  button.disabled = on;
  if (on) summary.dataset.state = "running";
  else delete summary.dataset.state;
}

async function submit() {
  if (button.disabled) return;
  faults.clear();
  try {
    const body = request();
    sending(true);
    const { url } = await api("/compiles", { body });
    location.assign(url);
  } catch (error) {
    sending(false);
    faults.submission(error);
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  void submit();
});
wireImport();
onKeys({ "Mod+Enter": () => void submit() });
document.addEventListener("click", (event) => {
  const card = event.target instanceof Element ? event.target.closest("[data-example]") : null;
  if (!(card instanceof HTMLAnchorElement) || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  // Coming back finds what was there, edits included.
  history.replaceState({ source: editor.source }, "");
  history.pushState(null, "", card.href);
  scrollTo({ top: 0 });
  void openExample(card.dataset.example ?? "");
});
addEventListener("popstate", ({ state }) => void (typeof state?.source === "string" ? reopen(state.source) : openAddress()));
// A page that comes back from the browser's cache may be sent again.
addEventListener("pageshow", () => sending(false));
if (/Mac|iP(hone|ad)/.test(navigator.userAgent)) need("[data-mod-enter]", HTMLElement).textContent = "⌘ Enter";
followLive("options", () => {
  options.collect();
  describe();
});
followLive("recent");
void openAddress().catch((error) => notice(error instanceof ApiError ? error.message : String(error), "error"));
