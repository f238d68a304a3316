// The query string of a request, in the order in which it was written, and its parts.

const GROUP_KEYS = ["resources", "or_resources", "required", "member_of", "in_tree", "in_subtree"];
const GROUP_KEY = new RegExp(`^(${GROUP_KEYS.join("|")})(.*)$`);

/**
 * The pairs of a query string. A whole line of a log will do: what stands around the query goes.
 * @param {string} text
 * @returns {Pair[]}
 */
export function parse(text) {
  const words = text.trim().split(/\s+/).find((word) => word.includes("=")) ?? "";
  const [, query = words] = /\?(.*)$/.exec(words) ?? [];
  return query.replace(/^["']|["']$/g, "").split("&").filter((part) => part !== "").map((part) => {
    const [key, ...rest] = part.split("=");
    return { key: decoded(key), value: decoded(rest.join("=")) };
  });
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}

/**
 * The query string of these pairs, with as few escapes as a URL allows.
 * @param {Pair[]} pairs
 */
export function build(pairs) {
  return pairs.filter(({ value }) => value !== "").map(({ key, value }) => `${encoded(key)}=${encoded(value)}`).join("&");
}

/** @param {string} text */
function encoded(text) {
  return encodeURIComponent(text).replace(/%(3A|2C|21|2F|3B|40|24)/g, (escape) => decodeURIComponent(escape));
}

/**
 * What a key of a group is about, and the suffix of the group; `null` if it belongs to no group.
 * @param {string} key
 */
export function groupKey(key) {
  const match = GROUP_KEY.exec(key);
  return match === null ? null : { name: match[1], suffix: match[2] };
}

/**
 * The suffixes of all groups, in order.
 * @param {Pair[]} pairs
 */
export function suffixes(pairs) {
  const found = pairs.map(({ key }) => groupKey(key)?.suffix).filter((suffix) => suffix !== undefined);
  return [...new Set(found)];
}

/**
 * `VCPU:4,MEMORY_MB:8192` as classes and amounts.
 * @param {string} value
 * @returns {[string, string][]}
 */
export function amounts(value) {
  return value.split(",").map((part) => {
    const [name, amount = ""] = part.split(":");
    return [name, amount];
  });
}
