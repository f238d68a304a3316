// A tree of providers as nested boxes, as the documents of the Placement API draw it.

import { deviceName } from "./devices.js";
import { h, svg } from "./dom.js";
import { readable, shortClass, shortUuid, whole } from "./numbers.js";

export const SHARES = "MISC_SHARES_VIA_AGGREGATE";
const TRAITS_SHOWN = 2;

/** @type {Map<string, number>} */
const colours = new Map();

/**
 * One of eight colours, the same for an aggregate wherever it appears.
 * @param {string} uuid
 */
export function aggregateColour(uuid) {
  const known = colours.get(uuid) ?? colours.size % 8;
  colours.set(uuid, known);
  return `aggregate-${known}`;
}

/** @param {string} uuid */
export function aggregateTag(uuid) {
  return h("span", { class: `tag aggregate ${aggregateColour(uuid)}`, title: `aggregate ${uuid}` }, shortUuid(uuid));
}

/**
 * The boxes of a tree, the root outermost.
 * @param {Tree} tree
 * @param {Drawn} drawn
 */
export function drawTree(tree, drawn) {
  /** @type {Map<string | undefined, Provider[]>} */
  const children = new Map();
  for (const provider of tree.providers) {
    const siblings = children.get(provider.parent) ?? [];
    children.set(provider.parent, [...siblings, provider]);
  }
  const [root] = tree.providers;
  return box(root, root, children, drawn);
}

/** @param {Provider} provider @param {Provider} root @param {Map<string | undefined, Provider[]>} children @param {Drawn} drawn @returns {HTMLElement} */
function box(provider, root, children, drawn) {
  const below = children.get(provider.name) ?? [];
  const inner = below.map((child) => box(child, root, children, drawn));
  return h("section", boxAttributes(provider, drawn), boxContent(provider, root, drawn),
    inner.length > 0 && h("div", { class: "inner" }, inner));
}

/**
 * A sharing provider, which stands beside the tree.
 * @param {Provider} provider
 * @param {Drawn} drawn
 */
export function drawSharing(provider, drawn) {
  return h("section", boxAttributes(provider, drawn, "sharing"), boxContent(provider, provider, drawn));
}

/** @param {Provider} provider @param {Drawn} drawn @param {string} [kind] */
function boxAttributes(provider, drawn, kind = "") {
  const given = drawn.given?.get(provider.uuid);
  const quiet = drawn.given !== undefined && given === undefined;
  const changed = drawn.changed?.has(provider.uuid);
  const classes = ["box", kind, given && "given", quiet && "not-given", changed && "changed"];
  return { class: classes.filter(Boolean).join(" "), "data-uuid": provider.uuid, "data-name": provider.name, "aria-label": provider.name };
}

/** @param {Provider} provider @param {Provider} root @param {Drawn} drawn @returns {Child[]} */
function boxContent(provider, root, drawn) {
  const given = drawn.given?.get(provider.uuid);
  const name = h("h3", { title: `${provider.name} ${provider.uuid}` }, shortName(provider.name, root.name));
  if (drawn.small) return [name, given && givenWords(given)];
  const device = deviceName(provider);
  return [
    h("div", { class: "heading" }, name, device && h("span", { class: "quiet" }, device),
      provider.owner && h("span", { class: "quiet" }, `owner ${provider.owner}`)),
    tags(provider, drawn),
    h("div", { class: "bars" }, Object.entries(provider.inventories).map(([name, inventory]) =>
      bar(name, inventory, provider.usages[name] ?? 0, provider.uuid))),
    ...(drawn.below?.get(provider.uuid) ?? []),
  ];
}

/** @param {Given} given */
function givenWords(given) {
  const amounts = Object.entries(given.resources);
  return h("div", { class: "gives" },
    given.groups.filter((group) => group !== "" || given.several).map((group) => h("span", { class: "tag group" }, groupName(group))),
    amounts.map(([name, amount]) => h("span", { class: "amount", title: `${whole(amount)} ${name}` },
      h("b", {}, readable(name, amount)), ` ${shortClass(name, amount)}`)));
}

/** @param {string} suffix */
export function groupName(suffix) {
  return suffix === "" ? "rest" : suffix.replace(/^_/, "");
}

/**
 * A name without what the root's name says already.
 * @param {string} name
 * @param {string} root
 */
export function shortName(name, root) {
  const world = /^[^/]*\//.exec(root)?.[0] ?? "";
  const common = [root, world].find((beginning) => beginning && name.startsWith(beginning) && name !== root) ?? "";
  return name.slice(common.length).replace(/^[-_.:/ ]+/, "") || name;
}

/** @param {Provider} provider @param {Drawn} drawn */
function tags(provider, drawn) {
  const traits = [...provider.traits].sort((a, b) => telling(a) - telling(b));
  const shown = drawn.traits ? traits : traits.slice(0, TRAITS_SHOWN);
  const aggregates = drawn.aggregates === false ? [] : provider.aggregates.map(aggregateTag);
  const rest = traits.length - shown.length;
  if (aggregates.length + shown.length === 0) return null;
  return h("div", { class: "tags" }, aggregates,
    shown.map((trait) => h("span", { class: trait === SHARES ? "tag shares" : "tag", title: trait }, withoutCustom(trait))),
    rest > 0 && h("span", { class: "tag more", title: traits.slice(TRAITS_SHOWN).join("\n") }, `+${rest}`));
}

// What tells one provider from another comes first. All hosts have the rest.
const TELLING = [/^CUSTOM_/, /^HW_(NUMA|GPU|PCI)/, /^HW_NIC_(?!SRIOV$)/, /^STORAGE_/, /^HW_(?!CPU)/, /^MISC_/, /AVX512F$/, /^HW_/];

/** @param {string} trait */
function telling(trait) {
  const place = TELLING.findIndex((pattern) => pattern.test(trait));
  return place < 0 ? TELLING.length : place;
}

/** @param {string} name */
function withoutCustom(name) {
  return name.replace(/^CUSTOM_/, "");
}

/**
 * What of an inventory is used, reserved and free: a bar, and the same in words.
 * @param {string} name
 * @param {Inventory} inventory
 * @param {number} used
 * @param {string} [uuid] of the provider: what is used leads to its consumers
 */
export function bar(name, inventory, used, uuid = "") {
  const ratio = inventory.allocation_ratio;
  const capacity = Math.floor((inventory.total - inventory.reserved) * ratio);
  const free = Math.max(0, capacity - used);
  const over = used > capacity;
  const words = [
    used > 0 && uuid ? h("a", { href: `./consumers?${new URLSearchParams({ provider: uuid })}`, title: "What holds it" }, h("b", {}, readable(name, used)), " used") : [h("b", {}, readable(name, used)), " used"], " · ", h("b", {}, readable(name, free)), " free",
    inventory.reserved > 0 && ` · ${readable(name, inventory.reserved)} reserved`,
    ratio !== 1 && ` · ${whole(inventory.total)} × ${ratio}`,
    over && h("span", { class: "over" }, ` · ${readable(name, used - capacity)} over capacity`),
  ];
  const whole_ = `${whole(used)} of ${whole(capacity)} ${name} used, ${whole(inventory.reserved)} of ${whole(inventory.total)} reserved`;
  return h("div", { class: "class-row", title: whole_ },
    h("span", { class: "class-name" }, withoutCustom(name).replace(/_KILOBIT_PER_SEC$/, "")),
    h("span", { class: "words" }, words.flat()),
    strip(used, free, Math.round(inventory.reserved * ratio), over));
}

/**
 * The bar itself: used from the left, reserved at the right end.
 * @param {number} used
 * @param {number} free
 * @param {number} reserved
 * @param {boolean} over
 */
export function strip(used, free, reserved, over) {
  const all = used + free + reserved || 1;
  return h("span", { class: `strip-bar${over ? " is-over" : ""}`, "aria-hidden": "true" },
    used > 0 && h("span", { class: "used", css: { width: `${(100 * used) / all}%` } }),
    reserved > 0 && h("span", { class: "reserved", css: { width: `${(100 * reserved) / all}%` } }));
}

/**
 * The sentence of the edge from a tree to a sharing provider.
 * @param {Provider} pool
 * @param {Tree} tree
 * @returns {{words: HTMLElement, through: string[]}}
 */
export function edge(pool, tree) {
  const members = new Set(tree.providers.flatMap((provider) => provider.aggregates));
  const through = pool.aggregates.filter((uuid) => members.has(uuid));
  const classes = Object.keys(pool.inventories).join(", ") || "nothing";
  const words = h("p", { class: `edge ${through[0] ? aggregateColour(through[0]) : ""}` }, `shares ${classes} through `, through.map(aggregateTag));
  return { words, through };
}

/**
 * Lines from sharing providers to the boxes whose aggregates connect them.
 * @param {HTMLElement} place has the boxes, and is what positions refer to
 * @param {Tree} tree
 */
export function drawEdges(place, tree) {
  place.querySelector(":scope > svg.edges")?.remove();
  const frame = place.getBoundingClientRect();
  const lines = [];
  for (const pool of tree.sharing_providers) {
    const end = boxOf(place, pool.uuid)?.getBoundingClientRect();
    const { through } = edge(pool, tree);
    for (const provider of tree.providers) {
      const shared = provider.aggregates.find((uuid) => through.includes(uuid));
      const start = boxOf(place, provider.uuid)?.getBoundingClientRect();
      // On narrow screens the pool stands below, and the words alone tell.
      if (!shared || !start || !end || end.left < start.right) continue;
      const [x1, y1] = [start.right - frame.left, Math.min(start.top + 20, start.bottom) - frame.top];
      const [x2, y2] = [end.left - frame.left, end.top + 20 - frame.top];
      const middle = (x1 + x2) / 2;
      lines.push(svg("path", { class: aggregateColour(shared), d: `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2},${y2}` }));
    }
  }
  if (lines.length > 0) {
    const picture = svg("svg", { class: "edges", "aria-hidden": "true", width: frame.width, height: frame.height }, lines);
    place.append(picture);
  }
}

/** @param {HTMLElement} place @param {string} uuid */
function boxOf(place, uuid) {
  return place.querySelector(`[data-uuid="${CSS.escape(uuid)}"]`);
}

/**
 * The uuids of providers that differ between two states of a tree.
 * @param {Tree} before
 * @param {Tree} after
 */
export function differences(before, after) {
  const known = new Map([...before.providers, ...before.sharing_providers].map((one) => [one.uuid, JSON.stringify(one)]));
  const now = [...after.providers, ...after.sharing_providers];
  return new Set(now.filter((one) => known.get(one.uuid) !== JSON.stringify(one)).map((one) => one.uuid));
}
