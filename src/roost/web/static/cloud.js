// Cloud: all roots as a grid, by how full they are or by how many more of a request fit.

import { address, get, post, Refusal } from "./api.js";
import { Grid } from "./cells.js";
import { h, put, quietly, select } from "./dom.js";
import { fillField } from "./filters.js";
import { command } from "./frame.js";
import { follow } from "./live.js";
import { measured, percent, whole } from "./numbers.js";
import { arrange, AUDITED, keep, readRows, sums } from "./roots.js";
import { content, noProviders, readTree, someTrees, treeAddress } from "./tree.js";

/** @type {[string, string][]} */
const FULLNESS = [["", "any"], ["over", "over capacity"], ["90", "90 % or more"], ["50", "50 % or more"], ["empty", "nothing used"], ["cleaning", "needs cleaning"], ["fits", "still fits"], ["none", "nothing fits"]];
/** @type {[string, string][]} */
const GROUPS = [["", "nothing"], ["aggregate", "aggregate"], ["name", "beginning of the name"]];
/** @type {[string, string][]} */
const ORDERS = [["", "name"], ["used", "fullest first"], ["free", "most room first"]];
const ASKED = ["class", "order", "fits", "group", "then", "name", "trait", "aggregate", "full"];
const FIRST_PAGE = 1000;
const LATER_PAGES = 5000;
const PAUSE_MILLISECONDS = 500;
const PAUSE_TIMES = 20;
const FINDINGS_MAX = 100;
const TREES_LOOKED_AT = 50;

/** @type {Page} */
export const page = { title: "Cloud", show };

/** @param {View} view */
function show(view) {
  const form = filters(view);
  const totals = h("div", { class: "totals", role: "status" });
  const grid = new Grid(view);
  const panel = h("aside", { class: "panel", hidden: true, "aria-label": "Tree" });
  put(view.filters, form);
  put(view.main, totals, h("div", { class: "cloud" }, grid.element, panel));
  let drawn = "";
  let reading = new AbortController();
  view.signal.addEventListener("abort", () => reading.abort());

  const draw = async (/** @type {URLSearchParams} */ asked) => {
    reading.abort();
    reading = new AbortController();
    const { signal } = reading;
    const began = performance.now();
    const found = await readFirst(asked, signal);
    form.fill(asked, found);
    const state = () => {
      const roots = keep(found.roots, asked, found.resourceClass);
      put(totals, numbers(found, roots, asked));
      grid.show(arrange(roots, asked), found.resourceClass, asked.has("fits"));
      if (found.roots.length === 0) grid.say(isFiltered(asked) ? noMatch(view) : noProviders());
      else if (roots.length === 0) grid.say(noMatch(view));
    };
    state();
    foot(view, asked, found);
    for (let more = found.next; more !== null && !signal.aborted; more = found.next) {
      await readMore(found, asked, signal);
      state();
    }
    // A large cloud that changes all the time is not read all the time.
    const pause = Math.max(PAUSE_MILLISECONDS, PAUSE_TIMES * (performance.now() - began));
    void follow(found.cursor, null, async () => {
      await new Promise((resolve) => setTimeout(resolve, pause));
      if (!signal.aborted) await draw(view.asked());
    }, signal);
  };

  return async () => {
    const asked = view.asked();
    const key = ASKED.map((name) => asked.get(name)).join("\n");
    if (key !== drawn) {
      drawn = key;
      try {
        await draw(asked);
      } catch (error) {
        if (!(error instanceof Refusal) || !(error.isLacking || error.status === 400)) throw error;
        form.fill(asked, null);
        put(totals);
        if (error.isLacking) return grid.say(h("div", {}, h("p", { class: "missing" }, error.message), await someTrees(view.signal)));
        grid.say(h("div", { class: "state", role: "alert" }, h("h2", {}, "The server does not take this"), h("p", {}, error.message)));
      }
    }
    grid.choose(asked.get("root"));
    await showPanel(view, panel, asked.get("root"));
  };
}

/** @param {URLSearchParams} asked */
function isFiltered(asked) {
  return ["name", "trait", "aggregate", "full"].some((name) => asked.get(name));
}

/** @param {View} view */
function noMatch(view) {
  const forget = () => view.ask({ name: null, trait: null, aggregate: null, full: null });
  return h("div", { class: "state" }, h("h2", {}, "No root matches"), h("p", {}, "The filter leaves nothing. "), h("p", {}, h("button", { onclick: forget }, "Show all roots")));
}

// Reading.

/**
 * What the addresses of all pages of rows have.
 * @param {URLSearchParams} asked
 * @param {string} resourceClass
 * @param {string | null} group
 */
function parameters(asked, resourceClass, group) {
  const name = asked.get("name");
  return {
    resource_class: resourceClass,
    fits: asked.get("fits"),
    group_by: group && group !== "name" ? group : null,
    name: name && !name.includes("*") ? `*${name}*` : name,
    trait: asked.get("trait"),
    aggregate: asked.get("aggregate"),
  };
}

/**
 * The first rows, which is all for most clouds.
 * @param {URLSearchParams} asked
 * @param {AbortSignal} signal
 * @returns {Promise<Cloud>}
 */
async function readFirst(asked, signal) {
  let resourceClass = asked.get("class") ?? "";
  if (!resourceClass) {
    const { totals } = await get(address("roost/overview", { page_limit: 1 }), signal);
    resourceClass = ["VCPU", "PCPU"].find((name) => totals[name]) ?? Object.keys(totals)[0] ?? "";
  }
  const fits = asked.get("fits");
  const [first, capacity] = await Promise.all([
    get(address("roost/overview", { ...parameters(asked, resourceClass, asked.get("group")), page_limit: FIRST_PAGE }), signal),
    fits && !isFiltered(asked) ? get(address(`roost/capacity?${fits}`), signal) : null,
  ]);
  const classes = Object.keys(first.totals).sort();
  /** @type {Cloud} */
  const cloud = { roots: readRows(first), resourceClass, classes, totals: first.totals, count: first.roots, exact: first.exact, capacity, next: first.next, cursor: first.cursor, findings: new Map() };
  await readSecond(cloud, cloud.roots, asked, null, FIRST_PAGE, signal);
  if (AUDITED.has(asked.get("full") ?? "")) cloud.findings = await readFindings(signal);
  mark(cloud, cloud.roots);
  return cloud;
}

/**
 * The kinds of findings by the uuid of the root. An audit names providers, so roots are looked up.
 * @param {AbortSignal} signal
 */
async function readFindings(signal) {
  const { findings } = await post(address("roost/audit"), {}, signal);
  /** @type {Map<string, Set<string>>} */
  const found = new Map();
  for (const { kind, provider } of findings.filter((/** @type {any} */ each) => each.provider).slice(0, FINDINGS_MAX)) {
    const { root_provider_uuid: root } = await get(address(`resource_providers/${provider.uuid}`), signal);
    found.set(root, (found.get(root) ?? new Set()).add(kind));
  }
  return found;
}

/** @param {Cloud} cloud @param {Root[]} roots */
function mark(cloud, roots) {
  for (const root of roots) root.findings = cloud.findings.get(root.uuid) ?? root.findings;
}

/** @param {Cloud} cloud @param {URLSearchParams} asked @param {AbortSignal} signal */
async function readMore(cloud, asked, signal) {
  const marker = cloud.next;
  const page = await get(address("roost/overview", { ...parameters(asked, cloud.resourceClass, asked.get("group")), page_limit: LATER_PAGES, marker }), signal);
  const roots = readRows(page);
  await readSecond(cloud, roots, asked, marker, LATER_PAGES, signal);
  mark(cloud, roots);
  cloud.roots.push(...roots);
  cloud.next = page.next;
}

/**
 * An answer groups by one thing. The group within the group takes a second answer.
 * @param {Cloud} cloud
 * @param {Root[]} roots
 * @param {URLSearchParams} asked
 * @param {string | null} marker
 * @param {number} limit
 * @param {AbortSignal} signal
 */
async function readSecond(cloud, roots, asked, marker, limit, signal) {
  const then = asked.get("then");
  if (!then || then === "name") return;
  const page = await get(address("roost/overview", { ...parameters(asked, cloud.resourceClass, then), page_limit: limit, marker }), signal);
  const groups = new Map(readRows(page).map((root) => [root.uuid, root.group]));
  for (const root of roots) root.second = groups.get(root.uuid) ?? null;
}

// The form.

/** @param {View} view */
function filters(view) {
  const classes = h("select", { name: "class" });
  const inputs = {
    fits: text("fits", "resources=VCPU:4,MEMORY_MB:8192", 30),
    name: text("name", "name", 12),
    trait: text("trait", "trait", 16),
    aggregate: text("aggregate", "aggregate uuid", 12),
  };
  const order = select("order", "order", ORDERS, "");
  const groups = select("group", "group by", GROUPS, "");
  const then = select("then", "then by", GROUPS, "");
  const full = select("full", "filter", FULLNESS, "");
  const form = h("form", { class: "row", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
    h("label", {}, h("span", {}, "class"), " ", classes),
    h("label", {}, h("span", {}, "or request"), " ", inputs.fits),
    order, full, h("span", { class: "together" }, groups, then),
    inputs.name, inputs.trait, inputs.aggregate);
  form.addEventListener("change", (event) => {
    const field = /** @type {HTMLInputElement} */ (event.target);
    view.ask({ [field.name]: field.value.trim() || null, root: null });
  });
  form.addEventListener("input", quietly(300, (event) => {
    const field = /** @type {HTMLInputElement} */ (event.target);
    if (field === inputs.name) view.ask({ name: field.value.trim() || null, root: null }, true);
  }));
  for (const label of [groups, then]) label.addEventListener("focusin", () => { void offerPrefixes([groups, then], view.signal).catch(() => {}); }, { once: true });
  return Object.assign(form, {
    fill: (/** @type {URLSearchParams} */ asked, /** @type {Cloud | null} */ found) => {
      if (found) put(classes, found.classes.map((name) => h("option", { value: name, selected: name === found.resourceClass }, name)));
      for (const [name, input] of Object.entries(inputs)) if (document.activeElement !== input) input.value = asked.get(name) ?? "";
      for (const [label, name] of /** @type {[HTMLLabelElement, string][]} */ ([[order, "order"], [groups, "group"], [then, "then"], [full, "full"]])) {
        fillField(/** @type {HTMLSelectElement} */ (label.querySelector("select")), asked.get(name) ?? "");
      }
      then.hidden = !asked.get("group");
    },
  });
}

/** @param {string} name @param {string} hint @param {number} size */
function text(name, hint, size) {
  return h("input", { name, placeholder: hint, "aria-label": name === "fits" ? "Request" : `Filter by ${name}`, size, spellcheck: "false", class: name === "fits" ? "mono" : "" });
}

/** Offer beginnings that several traits of some roots share: CUSTOM_RACK_. @param {HTMLElement[]} labels @param {AbortSignal} signal */
async function offerPrefixes(labels, signal) {
  /** @type {{trees: Tree[]}} */
  const { trees } = await get(address("roost/trees", { page_limit: TREES_LOOKED_AT }), signal);
  const counts = new Map();
  for (const trait of new Set(trees.flatMap((tree) => tree.providers[0].traits))) {
    const prefix = trait.replace(/[^_]*$/, "");
    counts.set(prefix, (counts.get(prefix) ?? 0) + 1);
  }
  const prefixes = [...counts].filter(([prefix, count]) => count > 1 && prefix.split("_").length > 2).map(([prefix]) => prefix).sort();
  for (const label of labels) {
    const list = /** @type {HTMLSelectElement} */ (label.querySelector("select"));
    const known = new Set([...list.options].map((option) => option.value));
    for (const prefix of prefixes) if (!known.has(`trait:${prefix}`)) list.append(h("option", { value: `trait:${prefix}` }, `trait ${prefix}`));
  }
}

// The numbers.

/** @param {Cloud} found @param {Root[]} roots @param {URLSearchParams} asked */
function numbers(found, roots, asked) {
  const all = sums(roots);
  const usable = all.used + all.free;
  const name = found.resourceClass;
  const share = percent(all.used, usable);
  return [
    figure(whole(found.next === null ? roots.length : found.count), "roots", found.next === null ? "" : `${whole(found.roots.length)} read`),
    figure(whole(all.total), `${name} in all`, measured(name, all.total)),
    figure(whole(usable), "usable", measured(name, usable)),
    figure(whole(all.used), "used", [measured(name, all.used), share === null ? "" : `${share} %`].filter(Boolean).join(" · "), all.over > 0 ? "over" : "used"),
    figure(whole(all.reserved), "reserved", measured(name, all.reserved)),
    figure(whole(all.free), "free", measured(name, all.free)),
    all.over > 0 && figure(whole(all.over), "roots over capacity", "", "over"),
    asked.get("fits") && fitting(found, all.fits),
  ];
}

/** @param {Cloud} found @param {number} sum */
function fitting(found, sum) {
  if (found.capacity === null) return figure(whole(sum), "more fit, each root by itself", "", "good");
  const least = found.capacity.exact ? "" : "at least ";
  return figure(least + whole(found.capacity.fits), "more of this request fit", "", found.capacity.fits > 0 ? "good" : "missing");
}

/** @param {string} number @param {string} words @param {string} [beside] @param {string} [kind] */
export function figure(number, words, beside = "", kind = "") {
  return h("div", { class: `figure ${kind}` }, h("strong", {}, number), h("span", {}, words), beside && h("small", {}, beside));
}

/** @param {View} view @param {URLSearchParams} asked @param {Cloud} found */
function foot(view, asked, found) {
  const fits = asked.get("fits");
  view.foot({
    url: address("roost/overview", parameters(asked, found.resourceClass, asked.get("group"))),
    command: fits ? command("capacity", "--from-query", fits) : command("usage"),
  });
}

// The panel.

/** @param {View} view @param {HTMLElement} panel @param {string | null} uuid */
async function showPanel(view, panel, uuid) {
  if (!uuid) {
    panel.hidden = true;
    put(panel);
    return;
  }
  const close = () => view.ask({ root: null });
  const tree = await readTree(treeAddress(uuid), view.signal);
  const [root] = tree.providers;
  put(panel, h("div", { class: "panel-head" }, h("h2", {}, h("a", { href: `./tree?${new URLSearchParams({ provider: root.name })}` }, root.name)),
    h("button", { class: "quiet", onclick: close, "aria-label": "Close the tree" }, "✕")),
    h("div", { class: "tree-page in-panel" }, content(tree, {})));
  panel.onkeydown = (event) => { if (event.key === "Escape") close(); };
  panel.hidden = false;
}
