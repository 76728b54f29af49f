// Calls to /api/v1. A refusal becomes an ApiError that carries the server's words; so does a server that is gone.

/** What went wrong with a request; `message` is fit for a user, `detail` is the server's own extra data. */
export class ApiError extends Error {
  /**
   * @param {number} status 0 where no answer came
   * @param {string} code
   * @param {string} message
   * @param {any} [detail]
   */
  constructor(status, code, message, detail) {
    super(message);
    this.status = status;
    this.code = code;
    this.detail = detail;
  }
}

/**
 * @param {string} path below /api/v1, as `/traces/abc`, or a whole path of a page's JSON twin
 * @param {{body?: unknown, data?: Blob, signal?: AbortSignal}} [options] a body, or data as it is, makes it a POST
 * @returns {Promise<any>} the parsed JSON
 */
export async function api(path, { body, data: blob, signal } = {}) {
  const url = path.startsWith("/api/") || /\.json($|\?)/.test(path) ? path : `/api/v1${path}`;
  /** @type {RequestInit} */
  const init = { headers: { accept: "application/json" }, signal };
  if (body !== undefined) {
    init.method = "POST";
    init.headers = { accept: "application/json", "content-type": "application/json" };
    init.body = JSON.stringify(body);
  } else if (blob) {
    init.method = "POST";
    init.headers = { accept: "application/json", "content-type": blob.type };
    init.body = blob;
  }
  const response = await reach(url, init);
  const text = await response.text();
  const data = parse(text);
  if (response.ok && data !== undefined) return data;
  const error = data?.error;
  if (error) throw new ApiError(response.status, error.code, error.message, error.detail);
  throw new ApiError(response.status, "unreadable", `The server answered ${response.status} without saying why; its log has more.`);
}

/**
 * @param {string} url
 * @param {RequestInit} init
 */
async function reach(url, init) {
  try {
    return await fetch(url, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "Loupe does not answer. Is `loupe serve` still running?");
  }
}

/** @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
