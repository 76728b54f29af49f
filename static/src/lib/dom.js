// Small helpers over the DOM; text always goes in as text, never as HTML.

/**
 * Finds the one element that a page is known to have.
 * @template {Element} T
 * @param {string} selector
 * @param {new () => T} type
 * @param {ParentNode} [root]
 * @returns {T}
 */
export function need(selector, type, root = document) {
  const found = root.querySelector(selector);
  if (!(found instanceof type)) throw new Error(`the page has no ${selector}`);
  return found;
}

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, string | number | boolean | null | undefined | EventListener>} Attributes */

/**
 * Builds an element: `el("a", {class: "tag", href: url, onclick: f}, "text", child)`. False, null and undefined
 * attributes and children are left out; `true` gives an empty attribute.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key.replace(/^on/, ""), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  append(element, ...children);
  return element;
}

/**
 * @param {ParentNode} parent
 * @param {...Child} children
 */
export function append(parent, ...children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(typeof child === "number" ? String(child) : child);
  }
}

/**
 * Runs `call` once input has paused for `wait` milliseconds.
 * @template {unknown[]} A
 * @param {number} wait
 * @param {(...args: A) => void} call
 * @returns {(...args: A) => void}
 */
export function debounce(wait, call) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...args), wait);
  };
}

/**
 * Reads the JSON that the server put into the page as `<script type="application/json" id=...>`.
 * @param {string} id
 * @returns {any} null where the page has none
 */
export function pageData(id) {
  const text = document.getElementById(id)?.textContent;
  return text ? JSON.parse(text) : null;
}

/** @returns {string} the nonce that the page's CSP allows for style elements, for `EditorView.cspNonce` */
export function cspNonce() {
  const meta = document.querySelector('meta[name="csp-nonce"]');
  return meta instanceof HTMLMetaElement ? meta.nonce || meta.content : "";
}
