// Consumers: what each holds and where, in groups on demand; one of them drawn on its trees.

import { address, get, Refusal } from "./api.js";
import { h, put } from "./dom.js";
import { filterForm } from "./filters.js";
import { Findings } from "./findings.js";
import { command } from "./frame.js";
import { age, counted, localTime, resourceWords, shortUuid } from "./numbers.js";
import { picture } from "./picture.js";
import { treeAddress } from "./tree.js";

const PAGE = 200;
const ASKED = ["type", "project", "user", "provider", "older_than", "order"];
/** @type {Field[]} */
const FIELDS = [
  { name: "type", label: "type", hint: "any", size: 10 },
  { name: "project", label: "project", hint: "any" },
  { name: "provider", label: "holds from", hint: "host or device", size: 28 },
  { name: "older_than", label: "older than", hint: "30d", size: 4 },
  { name: "order", label: "first", choices: [["", "the oldest"], ["size", "the largest"]] },
  { name: "group", label: "group by", choices: [["", "nothing"], ["type", "type"], ["project", "project"], ["user", "user"], ["host", "host"]] },
];
/** @type {Record<string, (one: Consumer) => string>} */
const KEYS = {
  type: (one) => one.consumer_type,
  project: (one) => one.project_id,
  user: (one) => one.user_id,
  host: (one) => [...new Set(one.allocations.map(({ root }) => root.name))].sort().join(" + ") || "holds nothing",
};

/** @type {Page} */
export const page = { title: "Consumers", show };

/** @param {View} view */
function show(view) {
  const form = filterForm(view, FIELDS);
  const drawn = h("div", {});
  const findings = new Findings(view.signal);
  const table = h("div", { class: "list" });
  put(view.filters, form);
  put(view.main, drawn, findings.element, table);
  void findings.look();
  let shown = "";
  /** @type {Consumer[]} */
  let found = [];
  /** @type {string | null} */
  let next = null;
  const read = async () => {
    const page = await get(listAddress(view.asked(), next), view.signal);
    found = found.concat(page.consumers);
    next = page.next;
  };
  const draw = () => {
    const group = KEYS[view.asked().get("group") ?? ""];
    const more = next && h("p", {}, h("button", { onclick: async () => { await read(); draw(); } }, `Read ${PAGE} more`), h("span", { class: "quiet" }, " Groups have what is read."));
    put(table, found.length > 0 ? groups(found, group, next !== null) : noConsumers(view), more);
  };
  return async () => {
    const asked = view.asked();
    form.fill(asked);
    const key = ASKED.map((name) => asked.get(name)).join("\n");
    if (key !== shown) {
      [found, next, shown] = [[], null, key];
      try {
        await read();
      } catch (error) {
        if (!(error instanceof Refusal) || ![400, 404].includes(error.status)) throw error;
        shown = "";
        return put(table, h("div", { class: "state", role: "alert" }, h("h2", {}, "The server does not take this"), h("p", {}, error.message)));
      } finally {
        foot(view);
      }
    }
    draw();
    await drawOne(drawn, view);
    foot(view);
  };
}

/** @param {URLSearchParams} asked @param {string | null} marker */
function listAddress(asked, marker) {
  return address("roost/consumers", { ...Object.fromEntries(ASKED.map((name) => [name, asked.get(name)])), page_limit: PAGE, marker });
}

/** @param {View} view */
function foot(view) {
  const asked = view.asked();
  const one = asked.get("consumer");
  const options = ASKED.filter((name) => asked.get(name)).flatMap((name) => [`--${name.replace("_", "-")}`, asked.get(name) ?? ""]);
  view.foot(one
    ? { url: address(`roost/consumers/${one}`), command: command("consumer", "show", one) }
    : { url: listAddress(asked, null), command: command("consumer", "list", ...options) });
}

/** @param {View} view */
function noConsumers(view) {
  const isFiltered = ASKED.some((name) => name !== "order" && view.asked().get(name));
  const forget = () => view.ask(Object.fromEntries(ASKED.map((name) => [name, null])));
  return h("div", { class: "state" }, h("h2", {}, isFiltered ? "No consumer matches" : "Nothing is claimed yet"),
    isFiltered ? h("p", {}, h("button", { onclick: forget }, "Show all consumers")) : h("p", {}, "Claim something: ", h("code", {}, "roost claim VCPU=1")));
}

// The table.

/** @param {Consumer[]} found @param {((one: Consumer) => string) | undefined} key @param {boolean} isPart */
function groups(found, key, isPart) {
  const least = isPart ? "The first " : "";
  const all = h("h2", {}, `${least}${counted(found.length, "consumer")}`, " ", h("span", { class: "quiet" }, sum(found)));
  if (!key) return [all, rows(found, "Consumers")];
  /** @type {Map<string, Consumer[]>} */
  const members = new Map();
  for (const one of found) members.set(key(one), [...(members.get(key(one)) ?? []), one]);
  const sorted = [...members].sort(([a, mine], [b, others]) => others.length - mine.length || a.localeCompare(b, "en", { numeric: true }));
  return [all, ...sorted.map(([name, mine]) => h("details", { class: "consumer-group", open: sorted.length < 4 },
    h("summary", {}, h("h3", { class: "group-head" }, name, " ", h("span", { class: "quiet" }, `${counted(mine.length, "consumer")} · ${sum(mine)}`))), rows(mine, name)))];
}

/** @param {Consumer[]} found */
function sum(found) {
  /** @type {Amounts} */
  const all = {};
  for (const { resources } of found) for (const [name, amount] of Object.entries(resources)) all[name] = (all[name] ?? 0) + amount;
  return resourceWords(all);
}

/** @param {Consumer[]} found @param {string} title */
function rows(found, title) {
  return h("table", { class: "wide", "aria-label": title },
    h("thead", {}, h("tr", {}, ["consumer", "type", "project", "age", "holds", "where", "share"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, found.map((one) => h("tr", {},
      h("th", { scope: "row" }, h("a", { class: "mono", href: link({ consumer: one.consumer }), title: one.consumer }, shortUuid(one.consumer))),
      h("td", {}, one.consumer_type), h("td", {}, one.project_id),
      h("td", { class: "number", title: localTime(one.created_at) }, age(one.created_at)),
      h("td", {}, resourceWords(one.resources)),
      h("td", {}, places(one)),
      h("td", { class: "number", title: "Of the whole cloud, all classes added up" }, `${(100 * one.size).toFixed(2)} %`)))));
}

/** @param {Consumer} one */
function places(one) {
  const names = [...new Set(one.allocations.map(({ root }) => root.name))];
  return names.flatMap((name, place) => [place > 0 && ", ", h("a", { class: "mono", href: `./tree?${new URLSearchParams({ provider: name, consumer: one.consumer })}` }, name)]);
}

/**
 * The address of this page with some things asked differently.
 * @param {Record<string, string>} changes
 */
function link(changes) {
  const asked = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) asked.set(name, value);
  return `./consumers?${asked}`;
}

// One consumer.

/** @param {HTMLElement} place @param {View} view */
async function drawOne(place, view) {
  const uuid = view.asked().get("consumer");
  if (!uuid) return put(place);
  /** @type {Consumer} */
  let one;
  try {
    one = await get(address(`roost/consumers/${encodeURIComponent(uuid)}`), view.signal);
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 404) throw error;
    return put(place, h("div", { class: "state", role: "alert" }, h("h2", {}, `No consumer has the uuid ${uuid}`), h("p", {}, "It holds nothing any more, or it never did.")));
  }
  const roots = [...new Set(one.allocations.map(({ root }) => root.uuid))];
  const trees = await Promise.all(roots.map((root) => get(treeAddress(root), view.signal)));
  const given = new Map(one.allocations.map(({ provider, resources }) => [provider.uuid, { groups: [], resources, several: false }]));
  put(place, h("section", { class: "before-after one", "aria-label": "One consumer" },
    h("div", { class: "panel-head" }, h("h1", { class: "mono" }, one.consumer),
      h("button", { class: "quiet", "aria-label": "Close the consumer", onclick: () => view.ask({ consumer: null }) }, "✕")),
    h("p", { class: "quiet" }, `${one.consumer_type} of project ${one.project_id}, user ${one.user_id}, since ${localTime(one.created_at)}`),
    h("p", {}, "Holds ", h("b", {}, resourceWords(one.resources) || "nothing"),
      one.query && [" ", h("a", { href: `./ask?${new URLSearchParams({ query: one.query })}` }, "what it asked for")]),
    picture(given, trees)));
}
