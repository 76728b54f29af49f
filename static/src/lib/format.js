// Numbers as people read them: units always, tabular where they stand in columns.

const whole = new Intl.NumberFormat("en-US");

/** @param {number} value @returns {string} `12,345` */
export function count(value) {
  return whole.format(value);
}

/**
 * @param {number} value
 * @param {string} one
 * @param {string} [many]
 * @returns {string} `1 pass`, `2 passes`
 */
export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** @param {number} value @returns {string} `512 B`, `24.0 KB`, `5.3 MB` with 1 KB = 1024 B */
export function bytes(value) {
  if (value < 1024) return `${value} B`;
  if (value < 1024 ** 2) return `${(value / 1024).toFixed(1)} KB`;
  if (value < 1024 ** 3) return `${(value / 1024 ** 2).toFixed(1)} MB`;
  return `${(value / 1024 ** 3).toFixed(1)} GB`;
}

/** @param {number} value seconds @returns {string} `3.2 ms`, `120 ms`, `1.84 s`, `2 min 5 s` */
export function seconds(value) {
  if (value < 0.01) return `${(value * 1000).toFixed(1)} ms`;
  if (value < 1) return `${(value * 1000).toFixed(0)} ms`;
  if (value < 100) return `${value.toFixed(2)} s`;
  return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

/** @type {[number, number, string][]} */
const steps = [
  [90, 60, "min"],
  [90 * 60, 3600, "h"],
  [36 * 3600, 86_400, "d"],
];

/**
 * @param {string} time ISO 8601
 * @param {number} [now] milliseconds
 * @returns {string} `just now`, `4 min ago`, `3 d ago`, or the date after a month
 */
export function ago(time, now = Date.now()) {
  const age = (now - Date.parse(time)) / 1000;
  if (age < 45) return "just now";
  if (age > 30 * 86_400) return time.slice(0, 10);
  const step = steps.findLast(([from]) => age >= from) ?? steps[0];
  return `${Math.max(1, Math.round(age / step[1]))} ${step[2]} ago`;
}
