// The rows of an overview: read, kept by a filter, arranged in groups, added up.

/** @param {{columns: string[], rows: any[][]}} answer @returns {Root[]} */
export function readRows(answer) {
  const at = Object.fromEntries(answer.columns.map((name, place) => [name, place]));
  return answer.rows.map((row) => ({
    uuid: row[at.uuid],
    name: row[at.name],
    total: row[at.total] ?? 0,
    reserved: row[at.reserved] ?? 0,
    used: row[at.used] ?? 0,
    free: row[at.free] ?? 0,
    fits: row[at.fits],
    group: row[at.group],
    second: null,
    findings: new Set(),
  }));
}

/** Filters that only the audit can answer. */
export const AUDITED = new Set(["over", "cleaning"]);

/** @type {Record<string, (root: Root) => boolean>} */
const FULL = {
  over: (root) => root.findings.has("over_capacity"),
  cleaning: (root) => root.findings.has("needs_cleaning"),
  empty: (root) => root.used === 0,
  fits: (root) => (root.fits ?? root.free) > 0,
  none: (root) => (root.fits ?? root.free) === 0,
};

/**
 * The roots that the page shows: those with the class, and as full as asked.
 * @param {Root[]} roots
 * @param {URLSearchParams} asked
 * @param {string} resourceClass
 */
export function keep(roots, asked, resourceClass) {
  const full = asked.get("full") ?? "";
  const least = Number(full);
  const test = FULL[full] ?? ((root) => !least || root.used >= (least / 100) * (root.used + root.free) && root.used > 0);
  // Without a request, a root without the class has nothing to tell.
  const all = asked.has("fits") || !resourceClass || AUDITED.has(full);
  const has = (/** @type {Root} */ root) => all || root.total > 0;
  return roots.filter((root) => has(root) && test(root));
}

/** @param {Root[]} roots @param {URLSearchParams} asked @returns {Group[]} */
export function arrange(roots, asked) {
  const first = asked.get("group") ?? "";
  const sorted = ORDERS[asked.get("order") ?? ""] ?? byName;
  if (!first) return [{ title: "", roots: sorted(roots), groups: [] }];
  const second = asked.get("then") ?? "";
  return divided(roots, (root) => (first === "name" ? beginning(root.name) : root.group)).map(([title, members]) => ({
    title: titled(first, title),
    roots: second ? [] : sorted(members),
    groups: !second ? [] : divided(members, (root) => (second === "name" ? beginning(root.name) : root.second)).map(([name, inner]) => ({
      title: titled(second, name), roots: sorted(inner), groups: [],
    })),
  }));
}

/** @param {Group} group @returns {Root[]} */
export function members(group) {
  return group.groups.length > 0 ? group.groups.flatMap(members) : group.roots;
}

/** @param {Root[]} roots @param {(root: Root) => string | null} key @returns {[string | null, Root[]][]} */
function divided(roots, key) {
  /** @type {Map<string | null, Root[]>} */
  const found = new Map();
  for (const root of roots) {
    const name = key(root);
    const members = found.get(name);
    if (members) members.push(root);
    else found.set(name, [root]);
  }
  // Groups without a name come last.
  return [...found].sort(([a], [b]) => (a === null ? 1 : b === null ? -1 : a.localeCompare(b, "en", { numeric: true })));
}

/** @param {string} kind @param {string | null} name */
function titled(kind, name) {
  if (name === null) return kind === "aggregate" ? "in no aggregate" : "others";
  return kind === "aggregate" ? `aggregate ${name.slice(0, 8)}` : name;
}

/** @param {Root[]} roots */
function byName(roots) {
  const order = new Intl.Collator("en", { numeric: true });
  return [...roots].sort((a, b) => order.compare(a.name, b.name));
}

/** @param {Root} root */
function share({ used, free }) {
  return used / (used + free || 1);
}

/** @type {Record<string, (roots: Root[]) => Root[]>} */
const ORDERS = {
  used: (roots) => byName(roots).sort((a, b) => share(b) - share(a)),
  free: (roots) => byName(roots).sort((a, b) => (b.fits ?? b.free) - (a.fits ?? a.free)),
};

/**
 * A name without its last number: `demo-host-`.
 * @param {string} name
 */
function beginning(name) {
  const slash = name.indexOf("/");
  if (slash > 0) return name.slice(0, slash + 1);
  return name.replace(/\d+[^\d]*$/, "") || name;
}

const MANY = 4;

/**
 * Shortens names: a beginning that many of these roots share goes.
 * @param {Root[]} roots
 * @returns {(name: string) => string}
 */
export function shortNames(roots) {
  /** @type {Map<string, number>} */
  const shared = new Map();
  for (const { name } of roots) shared.set(beginning(name), (shared.get(beginning(name)) ?? 0) + 1);
  return (name) => {
    const common = beginning(name);
    return (shared.get(common) ?? 0) >= MANY ? name.slice(common.length) || name : name.slice(name.indexOf("/") + 1);
  };
}

/** @param {Root[]} roots @returns {Sums} */
export function sums(roots) {
  const all = { total: 0, reserved: 0, used: 0, free: 0, fits: 0, over: 0 };
  for (const root of roots) {
    all.total += root.total;
    all.reserved += root.reserved;
    all.used += root.used;
    all.free += root.free;
    all.fits += root.fits ?? 0;
    all.over += root.findings.has("over_capacity") ? 1 : 0;
  }
  return all;
}
