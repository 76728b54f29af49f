// A page from disk keeps its state in the fragment: `#pass=ttgir:12&view=text&lines=L3-L7`.
import { readLines, readState, writeLines, writeQuery } from "../trace/address.js";

/** @type {import("../trace/address.js").Place} */
export const fragmentPlace = {
  read(fallback) {
    const { hash, search } = location;
    // Links within the page are written as the server's are; one that is opened in a new tab keeps its query.
    if (!hash || readLines(hash)) return readState(new URLSearchParams(search), readLines(hash), fallback);
    const query = new URLSearchParams(hash.slice(1));
    return readState(query, readLines(`#${query.get("lines")}`), fallback);
  },
  write(state) {
    const parts = [writeQuery(state), state.lines && `lines=${writeLines(state.lines)}`];
    return `#${parts.filter(Boolean).join("&")}`;
  },
};
