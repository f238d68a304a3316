// Tree: one host as nested boxes, with the pools that lend to it, live.

import { address, get, Refusal } from "./api.js";
import { readDevices } from "./devices.js";
import { h, put } from "./dom.js";
import { differences, drawEdges, drawSharing, drawTree, edge } from "./drawing.js";
import { command } from "./frame.js";
import { follow } from "./live.js";
import { counted, localTime, readable, shortUuid } from "./numbers.js";

/** @type {[string, string][]} */
const SHOWN = [["consumers", "consumers"], ["traits", "all traits"]];

/** @type {Page} */
export const page = { title: "Tree", show };

/** @param {View} view */
function show(view) {
  const form = filters(view);
  put(view.filters, form);
  const place = h("div", { class: "tree-page" });
  put(view.main, place);
  const resized = new ResizeObserver(() => shown && drawEdges(place, shown));
  resized.observe(place);
  view.signal.addEventListener("abort", () => resized.disconnect());
  /** @type {Tree | null} */
  let shown = null;
  let changedAt = "";
  let following = new AbortController();
  view.signal.addEventListener("abort", () => following.abort());

  const draw = async (/** @type {Tree} */ tree) => {
    const changed = shown === null ? new Set() : differences(shown, tree);
    const asked = view.asked();
    const below = asked.has("consumers") || asked.has("consumer") ? await consumersOf(tree, asked.get("consumer"), view.signal) : undefined;
    const names = [...tree.providers, ...tree.sharing_providers].filter((one) => changed.has(one.uuid)).map((one) => one.name);
    if (names.length > 0) changedAt = `Last change ${new Date().toLocaleTimeString()}: ${names.join(", ")}`;
    shown = tree;
    put(place, content(tree, { traits: asked.has("traits"), below, changed }));
    drawEdges(place, tree);
    const provider = asked.get("provider") ?? "";
    view.foot({ url: treeAddress(tree.providers[0].uuid), command: command("tree", "show", provider), note: changedAt || "Changes appear here as they happen." });
  };

  const look = async (/** @type {string} */ provider) => {
    try {
      const tree = await readTree(await findTree(provider, view.signal), view.signal);
      await draw(tree);
      return tree;
    } catch (error) {
      if (!(error instanceof Refusal && error.status === 404)) throw error;
      shown = null;
      put(place, h("div", { class: "state", role: "alert" }, h("h2", {}, `No provider is called ${provider}`),
        h("p", {}, "Look for it with the search box: press / and type a part of its name.")));
    }
  };

  return async () => {
    following.abort();
    following = new AbortController();
    const { signal } = following;
    const asked = view.asked();
    const provider = asked.get("provider");
    form.fill(asked);
    shown = null;
    changedAt = "";
    if (!provider) return chooseOne(view, place);
    put(place, h("p", { class: "state quiet" }, "Reading the tree…"));
    const cursor = await now(signal);
    const tree = await look(provider);
    if (cursor === null || !tree) return;
    // Pools are trees of their own.
    const root = tree.sharing_providers.length > 0 ? null : tree.providers[0].uuid;
    void follow(cursor, root, (changes) => changes === null || changes.some((change) => concerns(change, shown)) ? look(provider) : null, signal);
  };
}

/** The cursor of this moment; `null` if the server tells of no changes. @param {AbortSignal} signal @returns {Promise<string | null>} */
async function now(signal) {
  try {
    return (await get(address("roost/changes"), signal)).next;
  } catch (error) {
    if (error instanceof Refusal) return null;
    throw error;
  }
}

/** @param {Change} change @param {Tree | null} tree */
function concerns({ provider, root }, tree) {
  return [...tree?.providers ?? [], ...tree?.sharing_providers ?? []].some(({ uuid }) => uuid === provider?.uuid || uuid === root?.uuid);
}

/** @param {URL} url @param {AbortSignal} signal @returns {Promise<Tree>} */
export async function readTree(url, signal) {
  const tree = await get(url, signal);
  await readDevices([...tree.providers, ...tree.sharing_providers]);
  return tree;
}

/**
 * Where the tree of a provider is. A name with a slash cannot stand in a path, but its uuid can.
 * @param {string} provider
 * @param {AbortSignal} signal
 */
async function findTree(provider, signal) {
  if (!provider.includes("/")) return treeAddress(provider);
  const { resource_providers: found } = await get(address("resource_providers", { name: provider }), signal);
  if (found.length === 0) throw new Refusal(404, `No provider is called ${provider}.`);
  return treeAddress(found[0].uuid);
}

/** @param {string} provider */
export function treeAddress(provider) {
  return address(`roost/trees/${encodeURIComponent(provider)}`);
}

/** @param {Tree} tree @param {Drawn} drawn */
export function content(tree, drawn) {
  const pools = tree.sharing_providers.map((pool) => h("div", { class: "pool" }, edge(pool, tree).words, drawSharing(pool, drawn)));
  return [
    h("div", { class: "tree-boxes" }, drawTree(tree, drawn)),
    pools.length > 0 && h("div", { class: "pools", "aria-label": "Sharing providers" }, pools),
  ];
}

/** @param {View} view */
function filters(view) {
  const host = h("input", { name: "provider", "aria-label": "Host", size: 28, class: "mono", list: "host-names", spellcheck: "false" });
  const boxes = SHOWN.map(([name, text]) => {
    const box = h("input", { type: "checkbox", name });
    box.addEventListener("change", () => view.ask({ [name]: box.checked ? "yes" : null }));
    return { name, box, label: h("label", { class: "choice" }, box, " ", text) };
  });
  const form = h("form", { class: "row", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
    h("label", {}, h("span", {}, "host"), " ", host),
    h("span", { class: "end" }, h("span", { class: "quiet" }, "show"), boxes.map((each) => each.label)));
  host.addEventListener("change", () => view.ask({ provider: host.value.trim(), consumer: null }));
  return Object.assign(form, {
    fill: (/** @type {URLSearchParams} */ asked) => {
      host.value = asked.get("provider") ?? "";
      for (const { name, box } of boxes) box.checked = asked.has(name);
    },
  });
}

/** Without a name, the page offers the first hosts. @param {View} view @param {HTMLElement} place */
async function chooseOne(view, place) {
  view.foot({ url: address("resource_providers"), command: command("provider", "list") });
  put(place, await someTrees(view.signal));
}

const NAMES_MAX = 500;

/** The names of roots, as every placement server has them. @param {AbortSignal} signal */
export async function someTrees(signal) {
  const { resource_providers: found } = await get(address("resource_providers"), signal);
  const names = found.filter((/** @type {any} */ one) => !one.parent_provider_uuid).map((/** @type {Named} */ one) => one.name).sort();
  if (names.length === 0) return noProviders();
  return h("div", { class: "state" }, h("h2", {}, "Which tree?"),
    h("p", {}, `${counted(names.length, "tree")}. Choose one, or press / and type a part of a name.`),
    h("ul", { class: "names" }, names.slice(0, NAMES_MAX).map((/** @type {string} */ name) =>
      h("li", {}, h("a", { href: `./tree?${new URLSearchParams({ provider: name })}` }, name)))));
}

/** What a server without providers shows. */
export function noProviders() {
  return h("div", { class: "state" }, h("h2", {}, "No providers yet"),
    h("p", {}, "Describe this machine: ", h("code", {}, "roost agent --driver linux --once")),
    h("p", {}, "Or look at a cloud that is made up: ", h("code", {}, "roost serve --demo")));
}

const CONSUMERS_MAX = 100;

/**
 * What consumers hold, by the uuid of the provider that gives it.
 * @param {Tree} tree
 * @param {string | null} marked
 * @param {AbortSignal} signal
 */
async function consumersOf(tree, marked, signal) {
  const [root] = tree.providers;
  const { consumers, next } = await get(address("roost/consumers", { provider: root.uuid, page_limit: CONSUMERS_MAX }), signal);
  /** @type {Map<string, Child[]>} */
  const below = new Map();
  for (const consumer of consumers) {
    for (const { provider, resources } of consumer.allocations) {
      const line = h("li", { class: consumer.consumer === marked ? "marked" : "", title: `${consumer.consumer}\nproject ${consumer.project_id}\nuser ${consumer.user_id}\nsince ${localTime(consumer.created_at)}` },
        h("code", {}, shortUuid(consumer.consumer)), " ", h("span", { class: "quiet" }, consumer.consumer_type),
        " ", Object.entries(resources).map(([name, amount]) => `${readable(name, amount)} ${name}`).join(" · "));
      const lines = /** @type {HTMLElement} */ (below.get(provider.uuid)?.[0] ?? h("ul", { class: "consumers", "aria-label": "Consumers" }));
      lines.append(line);
      below.set(provider.uuid, [lines]);
    }
  }
  if (next) below.set(root.uuid, [...(below.get(root.uuid) ?? []), h("p", { class: "quiet" }, `The first ${CONSUMERS_MAX} consumers.`)]);
  return below;
}
