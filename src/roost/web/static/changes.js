// Changes: what was written, newest first, by request, live; and a slider back over the journal.

import { address, get, Refusal } from "./api.js";
import { h, put, quietly } from "./dom.js";
import { filterForm } from "./filters.js";
import { command } from "./frame.js";
import { follow } from "./live.js";
import { age, counted, localTime, whole } from "./numbers.js";

/** @type {Record<string, string>} */
const KINDS = {
  usage: "claimed or released", inventory: "inventory", traits: "traits", aggregates: "aggregates", provider_created: "created",
  provider_renamed: "renamed", provider_moved: "moved", provider_deleted: "deleted", provider_adopted: "adopted", provider: "changed",
  resource_classes: "classes came, went or got other names", trait_names: "traits came or went",
};
/** @type {Field[]} */
const FIELDS = [
  { name: "kind", label: "what", choices: [["", "everything"], .../** @type {[string, string][]} */ (Object.entries(KINDS))] },
  { name: "root", label: "in the tree of", hint: "any host", size: 20 },
];
const SHOWN_MAX = 1000;
const NAMES_MAX = 4;
const LINES_MAX = 5;

/** @type {Page} */
export const page = { title: "Changes", show };

/** @param {View} view */
function show(view) {
  const pause = h("button", { type: "button", "aria-pressed": "false", onclick: () => hold(!paused) }, "Pause");
  const form = filterForm(view, FIELDS, [pause]);
  const slider = h("input", { type: "range", "aria-label": "Until when", step: 1 });
  const words = h("span", { role: "status" });
  const list = h("div", {});
  put(view.filters, form, h("div", { class: "row timeline" }, h("label", {}, h("span", {}, "back in time"), " ", slider), words));
  put(view.main, list);
  /** @type {Change[]} the newest first */
  let shown = [];
  /** @type {Change[]} what came during a pause */
  let waiting = [];
  /** @type {string | null} */
  let older = null;
  let paused = false;
  let asking = new AbortController();
  view.signal.addEventListener("abort", () => asking.abort());

  const hold = (/** @type {boolean} */ wanted) => {
    paused = wanted;
    pause.setAttribute("aria-pressed", String(paused));
    if (!paused) shown = [...waiting.splice(0), ...shown];
    draw();
  };
  const draw = (fresh = 0) => {
    put(pause, paused ? `Go on${waiting.length > 0 ? ` (${whole(waiting.length)} new)` : ""}` : "Pause");
    const kind = view.asked().get("kind");
    const kept = kind ? shown.filter((change) => change.kind === kind) : shown;
    const more = older && h("p", {}, h("button", { onclick: async () => { await read(older); draw(); } }, "Show older ones"));
    put(list, kept.length > 0 ? groups(kept.slice(0, SHOWN_MAX), fresh) : nothing(shown.length > 0), more);
  };
  const read = async (/** @type {string | null} */ marker) => {
    const found = await get(past(view.asked(), marker), asking.signal);
    shown = marker ? [...shown, ...found.changes] : found.changes;
    older = found.older;
    return found;
  };
  slider.addEventListener("input", () => tell(words, Number(slider.value) < Number(slider.max) ? new Date(Number(slider.value) * 1000).toISOString() : null));
  slider.addEventListener("input", quietly(200, () => view.ask({ until: Number(slider.value) < Number(slider.max) ? new Date(Number(slider.value) * 1000).toISOString() : null })));

  return async () => {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const asked = view.asked();
    const [until, root] = [asked.get("until"), asked.get("root")];
    form.fill(asked);
    waiting = [];
    pause.hidden = until !== null;
    const options = ["root", "kind"].flatMap((name) => (asked.get(name) ? [`--${name}`, asked.get(name) ?? ""] : []));
    view.foot({ url: past(asked, null), command: until ? undefined : command("changes", "--follow", ...options) });
    try {
      const found = await read(null);
      const [first, last] = [found.oldest_at, new Date().toISOString()].map((moment) => Math.floor(Date.parse(moment ?? new Date().toISOString()) / 1000));
      Object.assign(slider, { min: first, max: last + 1, value: until ? Math.floor(Date.parse(until) / 1000) : last + 1 });
      tell(words, until, found.oldest_at);
      draw();
      if (until === null) void follow(found.next, root, (changes) => {
        if (changes === null) return void read(null).then(() => draw());
        const newest = changes.toReversed();
        if (paused) waiting = [...newest, ...waiting];
        else shown = [...newest, ...shown];
        draw(paused ? 0 : newest.length);
      }, signal);
    } catch (error) {
      if (!(error instanceof Refusal) || ![400, 404].includes(error.status)) throw error;
      put(list, h("div", { class: "state", role: "alert" }, h("h2", {}, "The server has no such changes"), h("p", {}, error.message)));
    }
  };
}

/** @param {URLSearchParams} asked @param {string | null} marker */
function past(asked, marker) {
  return address("roost/changes/past", { until: asked.get("until"), root: asked.get("root"), marker });
}

/** @param {HTMLElement} words @param {string | null} until @param {string | null} [oldest] */
function tell(words, until, oldest = null) {
  const asked = new URLSearchParams(location.search);
  asked.delete("until");
  if (until) put(words, `until ${localTime(until)} · `, h("a", { href: `./changes?${asked}` }, "back to now"));
  else put(words, h("span", { class: "good" }, "● live"), oldest && h("span", { class: "quiet" }, ` · the journal begins ${localTime(oldest)}`));
}

/** @param {boolean} isFiltered */
function nothing(isFiltered) {
  return h("div", { class: "state" }, h("h2", {}, isFiltered ? "No change of this kind" : "Nothing has changed"),
    h("p", {}, "What clients write appears here within a second."));
}

/** The changes by request; those of the first `fresh` are marked. @param {Change[]} changes @param {number} fresh */
function groups(changes, fresh) {
  /** @type {Map<string, Change[]>} */
  const found = new Map();
  for (const change of changes) {
    const key = change.request_id ?? `at ${change.at}`;
    found.set(key, [...(found.get(key) ?? []), change]);
  }
  const marked = new Set(changes.slice(0, fresh));
  return h("ol", { class: "feed" }, [...found.values()].map((mine) => {
    const [{ at, request_id: request, user_id: user, project_id: project }] = mine;
    return h("li", { class: marked.has(mine[0]) ? "changed" : "", "data-request": request ?? "" },
      h("div", {}, h("time", { datetime: at, title: localTime(at) }, new Date(at).toLocaleTimeString()), h("small", {}, ` ${age(at)} ago`)),
      h("div", {}, lines(mine), h("small", {}, [counted(mine.length, "change"), user && `by user ${user}${project ? ` of project ${project}` : ""}`, request ?? "no request is known"].filter(Boolean).join(" · "))));
  }));
}

/** One line for each kind and its classes. @param {Change[]} changes */
function lines(changes) {
  /** @type {Map<string, Change[]>} */
  const found = new Map();
  for (const change of changes) {
    const key = [KINDS[change.kind] ?? change.kind, change.resource_classes.join(", ")].join(" ").trim();
    found.set(key, [...(found.get(key) ?? []), change]);
  }
  const rest = found.size - LINES_MAX;
  return [...found].slice(0, LINES_MAX).map(([words, mine]) => {
    const providers = [...new Map(mine.map(({ provider }) => [provider?.uuid, provider])).values()];
    return h("p", {}, h("b", {}, words), providers.slice(0, NAMES_MAX).map((provider) => provider && [" ", h("a", { class: "mono", href: `./tree?${new URLSearchParams({ provider: provider.name ?? provider.uuid })}` }, provider.name ?? provider.uuid)]).flat(),
      providers.length > NAMES_MAX && h("span", { class: "quiet" }, ` and ${whole(providers.length - NAMES_MAX)} more`));
  }).concat(rest > 0 ? [h("p", { class: "quiet" }, `and ${rest} more kinds of changes`)] : []);
}
