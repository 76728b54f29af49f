// The home page: a source on the left, what to compile it for on the right, one button.
import { ApiError, api } from "../lib/api.js";
import { need, pageData } from "../lib/dom.js";
import { onKeys } from "../lib/keys.js";
import { followLive } from "../lib/live.js";
import { plural } from "../lib/format.js";
import { notice } from "../lib/notice.js";
import { SourceEditor } from "./editor.js";
import { onDrop, readFiles } from "./drops.js";
import { Faults } from "./faults.js";
import { Files, single } from "./files.js";
import { wireImport } from "./import.js";
import { Kernels } from "./kernels.js";
import { Options, Targets } from "./options.js";
import { Signature } from "./signature.js";
import { asPackage, fromTrace, readDraft, saveDraft } from "./sources.js";

/** @typedef {import("./sources.js").Start} Start */
/** @typedef {import("./state.js").Example} Example */

/** @type {{examples: Example[], targets: import("./state.js").Offer}} */
const data = pageData("home-data");
const form = need("[data-form]", HTMLFormElement);
const button = need("[data-submit]", HTMLButtonElement, form);
const summary = need("[data-count]", HTMLElement, form);

/** Whether the files are the user's own, so that what is opened joins them. */
let own = false;
const editor = new SourceEditor(need("[data-source]", HTMLTextAreaElement, form), (source) => {
  files.edit(source);
  edited();
});
const files = new Files(need("[data-files]", HTMLElement, form), editor, { onEdit: () => edited(), onShow: () => faults.again(), say: (message) => notice(message, "error") });
const faults = new Faults(form, editor, { entry: () => files.package.entry, active: () => files.active, open: (file) => files.select(file, false) });
const moduleField = need("[data-module-field]", HTMLInputElement, form);
const chooser = need("[data-choose]", HTMLInputElement, form);
const options = new Options(form, data.targets.backends);
const targets = new Targets(form, () => describe());
const table = need("[data-signature]", HTMLDetailsElement, form);
const signature = new Signature(table);
const kernels = new Kernels(
  {
    select: need("[data-kernel]", HTMLSelectElement, form),
    facts: need("[data-kernel-facts]", HTMLElement, form),
    origin: need("[data-origin]", HTMLElement, form),
    hint: need("[data-origin-hint]", HTMLElement, form),
    table,
  },
  signature,
  faults,
  () => describe(),
);

/** An edited source is no longer the example's, so a reload brings the draft. */
function edited() {
  own = true;
  moduleField.value = files.package.module ?? "";
  saveDraft(files.package);
  kernels.later(files.discovered);
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
  files.open(start.package);
  moduleField.value = start.package.module ?? "";
  kernels.origin = start.origin ?? "launch";
  signature.fill(start.args ?? {});
  if (start.targets?.length) targets.fill(start.targets);
  options.use(targets.backends);
  if (start.options) options.fill(start.options);
  faults.clear();
  await kernels.discover(files.discovered, start.kernel ?? null);
}

/** @param {string} name */
async function openExample(name) {
  const example = data.examples.find((item) => item.name === name);
  if (!example) return notice(`There is no example ${name}. The gallery below has all of them.`, "error");
  await open({ package: single(example.source), targets: example.targets ?? null });
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
  const draft = readDraft();
  await open({ package: draft ?? single(editor.source) });
  own = draft !== null;
}

/** @param {import("./files.js").Package} made */
async function reopen(made) {
  await open({ package: made });
  markExample(new URLSearchParams(location.search).get("example"));
}

/** @returns {import("./state.js").CompileRequest} */
function request() {
  const kernel = kernels.kernel?.name;
  const { args, constexprs } = signature.read();
  const given = { ...(kernels.given && { args }), ...(Object.keys(constexprs).length && { constexprs }) };
  const set = options.read();
  return { ...files.body, ...(kernel && { kernel }), ...given, targets: targets.read(), ...(Object.keys(set).length && { options: set }) };
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

/** Takes opened files: a folder or a zip for all that is there, others beside the user's own. @param {Promise<import("./drops.js").Opened>} reading */
async function take(reading) {
  try {
    const made = await reading;
    faults.clear();
    if (own && !made.whole && files.package.module === null) files.extend(made.files, files.package.entry in made.files ? files.package.entry : made.entry);
    else {
      files.open({ files: made.files, entry: made.entry, module: null });
      edited();
    }
    await kernels.discover(files.discovered);
    if (made.skipped) notice(`${plural(made.skipped, "file")} left out: only Python is compiled.`);
  } catch (error) {
    notice(error instanceof Error ? error.message : String(error), "error");
  }
}

/** Opens the file of an installed library's module. */
async function openModule() {
  const name = moduleField.value.trim();
  if (!name || name === files.package.module) return;
  try {
    const found = await api(`/modules/${encodeURIComponent(name)}`);
    faults.clear();
    files.open({ files: { [found.file]: found.source }, entry: found.file, module: found.module });
    edited();
    await kernels.discover(files.discovered);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    moduleField.setAttribute("aria-invalid", "true");
    notice(error.message, "error");
  }
}

moduleField.addEventListener("change", () => void openModule());
moduleField.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  void openModule();
});
need("[data-open]", HTMLButtonElement, form).addEventListener("click", () => chooser.click());
chooser.addEventListener("change", () => {
  if (chooser.files?.length) void take(readFiles([...chooser.files]));
  chooser.value = "";
});
onDrop(need(".editor", HTMLElement, form), (reading) => void take(reading));

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
  history.replaceState({ package: files.package }, "");
  history.pushState(null, "", card.href);
  scrollTo({ top: 0 });
  void openExample(card.dataset.example ?? "");
});
addEventListener("popstate", ({ state }) => {
  const made = asPackage(state?.package);
  void (made ? reopen(made) : openAddress());
});
// A page that comes back from the browser's cache may be sent again.
addEventListener("pageshow", () => sending(false));
if (/Mac|iP(hone|ad)/.test(navigator.userAgent)) need("[data-mod-enter]", HTMLElement).textContent = "⌘ Enter";
followLive("options", () => {
  options.collect();
  describe();
});
followLive("recent");
void openAddress().catch((error) => notice(error instanceof ApiError ? error.message : String(error), "error"));
