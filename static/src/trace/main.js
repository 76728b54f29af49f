import { need } from "../lib/dom.js";
import { typing } from "../lib/keys.js";
import { notice } from "../lib/notice.js";
import { wireAddenda } from "./addenda.js";
import { wireKeys } from "./keys.js";
import { copyMarkdown, tellShown } from "./markdown.js";
import { Menu, share } from "./menu.js";
import { TracePage } from "./page.js";
import { Progress } from "./progress.js";
import { refresh } from "./refresh.js";
import { Server } from "./server.js";

// Tells the server that this browser fetches texts itself, so that it need not highlight them into the page.
document.cookie = "scripted=1; path=/; max-age=31536000; samesite=lax";

const server = new Server(need("#main", HTMLElement).dataset.trace ?? "");
const page = new TracePage(server);
const menu = new Menu({ share, markdown: () => copyMarkdown(server.base, page.shown()) }, () => tellShown(server.base, page.shown()));
wireKeys(page, typing, menu);
wireAddenda(page, server.base);

const { main } = page;
const working = main.dataset.status === "queued" || main.dataset.status === "running";
if (main.hasAttribute("data-ready")) void page.load();
if (working) {
  let fresh = Promise.resolve();
  const renew = () => void (fresh = fresh.then(() => refresh(page)));
  new Progress(server.base, () => !main.hasAttribute("data-ready"), {
    onReady: renew,
    onDone: renew,
    onLost: () => notice("The server ended the progress of this page. Reload it to see how far the compilation is.", "error"),
    onGroup: () => notice("The launch code starts more than one kernel; the others are compiled as a group."),
  });
}
