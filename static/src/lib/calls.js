// Calls to a worker that may be ended: what a person asks of it can take for ever.

/** @typedef {{id: number, call: string, argument: unknown}} Request */
/** @typedef {{id: number, value?: any, error?: string}} Reply */
/** @typedef {{request: Request, resolve: (value: any) => void, reject: (error: Error) => void}} Waiting */

/** A call that took longer than it was given. */
export class SlowError extends Error {}

export class Calls {
  /** @type {Map<number, Waiting>} */
  #waiting = new Map();
  #next = 0;
  /** @type {Worker | null} */
  #worker = null;

  /**
   * @param {() => Worker} start
   * @param {{call: string, argument: unknown} | null} first what each worker but the first one is asked before all else
   */
  constructor(start, first = null) {
    this.start = start;
    this.first = first;
  }

  get busy() {
    return this.#waiting.size > 0;
  }

  /**
   * @param {string} call
   * @param {unknown} argument
   * @param {number | null} [limit] milliseconds, after which the worker is ended and the call rejected with a SlowError
   * @returns {Promise<any>}
   */
  async ask(call, argument, limit = null) {
    const request = { id: this.#next++, call, argument };
    const timer = limit === null ? 0 : setTimeout(() => this.#restart(request.id), limit);
    try {
      return await new Promise((resolve, reject) => {
        this.#waiting.set(request.id, { request, resolve, reject });
        this.#worker ??= this.#begin();
        this.#worker.postMessage(request);
      });
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends the worker and all that it was asked; the next call starts another. */
  stop() {
    this.#worker?.terminate();
    this.#worker = null;
    this.#fail(new Error("stopped"));
  }

  #begin() {
    const worker = this.start();
    worker.addEventListener("message", ({ data }) => this.#settle(data));
    worker.addEventListener("error", (event) => this.#fail(new Error(event.message || "its worker did not start")));
    return worker;
  }

  /** @param {Reply} reply */
  #settle({ id, value, error }) {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(new Error(error));
  }

  /** @param {Error} error */
  #fail(error) {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  /** Ends a call that does not return, and asks another worker for the rest. @param {number} slow */
  #restart(slow) {
    this.#worker?.terminate();
    this.#worker = this.#begin();
    if (this.first) this.#worker.postMessage({ id: -1, ...this.first });
    const waiting = this.#waiting.get(slow);
    this.#waiting.delete(slow);
    for (const { request } of this.#waiting.values()) this.#worker.postMessage(request);
    waiting?.reject(new SlowError("takes too long"));
  }
}

/** Answers calls in a worker. @param {Record<string, (argument: any) => unknown>} calls */
export function answer(calls) {
  addEventListener("message", ({ data }) => {
    const { id, call, argument } = /** @type {Request} */ (data);
    try {
      postMessage({ id, value: calls[call](argument) });
    } catch (error) {
      postMessage({ id, error: error instanceof Error ? error.message : String(error) });
    }
  });
}
