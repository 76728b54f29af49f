// The page's keyboard.
import { need } from "../lib/dom.js";
import { onKeys } from "../lib/keys.js";

/**
 * @param {import("./page.js").TracePage} page
 * @param {(target: EventTarget | null) => boolean} typing
 * @param {import("./menu.js").Menu} menu
 */
export function wireKeys(page, typing, menu) {
  const { router } = page;
  const help = need("#help", HTMLDialogElement);
  const filter = () => {
    page.drawer.set(true);
    router.go({ tab: "passes" }, "replace");
    page.list.field.focus();
    page.list.field.select();
  };
  const find = () => page.find.focus();
  need("[data-help]", HTMLButtonElement).addEventListener("click", () => help.showModal());
  onKeys({
    j: () => page.step(1, false),
    k: () => page.step(-1, false),
    J: () => page.step(1, true),
    K: () => page.step(-1, true),
    "/": find,
    "Mod+f": find,
    f: filter,
    p: filter,
    d: () => router.go({ tab: "passes", view: router.state.view === "text" ? "diff" : "text" }, "replace"),
    u: () => router.go({ tab: "passes", view: router.state.view === "unified" ? "diff" : "unified" }, "replace"),
    l: () => router.go({ locations: !router.state.locations }, "replace"),
    r: () => router.go({ raw: !router.state.raw, lines: null }, "replace"),
    "[": () => page.work.diff.toChange(-1),
    "]": () => page.work.diff.toChange(1),
    n: () => page.find.step(1),
    N: () => page.find.step(-1),
    e: () => menu.toggle(),
    "?": () => (help.open ? help.close() : help.showModal()),
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    if (typing(event.target) && event.target instanceof HTMLElement) event.target.blur();
    else if (menu.open) menu.close();
    else if (page.drawer.open) page.drawer.set(false);
    else if (page.find.query) page.find.clear();
    else if (router.state.lines) router.go({ lines: null }, "replace");
  });
}
