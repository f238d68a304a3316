// Amounts, units and times as people read them.

const WHOLE = new Intl.NumberFormat("en-US");
const SHORT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });
const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

/** @param {number} value */
export function whole(value) {
  return WHOLE.format(value);
}

/**
 * At most five characters, for small cells.
 * @param {number} value
 */
export function compact(value) {
  return Math.abs(value) < 10000 ? WHOLE.format(value) : COMPACT.format(value);
}

/** @type {[string, number, string[]][]} how names of classes end, the step between units, the units */
const UNITS = [
  ["_MB", 1024, ["MB", "GB", "TB", "PB"]],
  ["_GB", 1000, ["GB", "TB", "PB"]],
  ["_KILOBIT_PER_SEC", 1000, ["kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]],
  ["_BYTES", 1024, ["bytes", "kB", "MB", "GB", "TB"]],
];

/**
 * An amount with its unit, as `8 GB`; nothing for classes that count things, and for small amounts.
 * @param {string} resourceClass
 * @param {number} value
 */
export function measured(resourceClass, value) {
  const unit = UNITS.find(([ending]) => resourceClass.endsWith(ending));
  if (unit === undefined || value === 0) return "";
  const [, step, names] = unit;
  let [shown, level] = [value, 0];
  while (Math.abs(shown) >= step && level < names.length - 1) {
    shown /= step;
    level += 1;
  }
  return `${SHORT.format(shown)} ${names[level]}`;
}

/**
 * `8 GB` where there is a unit, `4` elsewhere.
 * @param {string} resourceClass
 * @param {number} value
 */
export function readable(resourceClass, value) {
  return measured(resourceClass, value) || whole(value);
}

/**
 * A share in percent; `null` if there is nothing to have a share of.
 * @param {number} part
 * @param {number} all
 */
export function percent(part, all) {
  return all > 0 ? Math.round((100 * part) / all) : null;
}

/**
 * A count with its noun.
 * @param {number} count
 * @param {string} noun
 */
export function counted(count, noun) {
  return `${whole(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * A time in the zone of the reader.
 * @param {string} moment
 */
export function localTime(moment) {
  return new Date(moment).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** @type {[number, string][]} */
const AGES = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

/**
 * How long ago, in the largest unit: `3 d`.
 * @param {string} moment
 */
export function age(moment) {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(moment)) / 1000));
  const [step, unit] = AGES.find(([each]) => seconds >= each) ?? [1, "s"];
  return `${whole(Math.floor(seconds / step))} ${unit}`;
}

const UNIT_ENDING = new RegExp(`(${UNITS.map(([each]) => each).join("|")})$`);

/** The name of a class beside an amount that has its unit. @param {string} name @param {number} amount */
export function shortClass(name, amount) {
  return name.replace(/^CUSTOM_/, "").replace(amount ? UNIT_ENDING : "", "");
}

/** `4 VCPU · 8 GB MEMORY`. @param {Amounts} resources */
export function resourceWords(resources) {
  return Object.entries(resources).map(([name, amount]) => `${readable(name, amount)} ${shortClass(name, amount)}`).join(" · ");
}

/** @param {string} uuid */
export function shortUuid(uuid) {
  return uuid.slice(0, 8);
}

/** @param {string} text */
export function isUuid(text) {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}
