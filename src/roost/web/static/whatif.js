// What if: imagined changes, and the answer before and after them. Nothing is written.

import { address, post, Refusal } from "./api.js";
import { h, put } from "./dom.js";
import { command } from "./frame.js";
import { whole } from "./numbers.js";

/** @type {[string, string][]} */
const KINDS = [["drain", "drain"], ["remove", "remove"], ["add", "add hosts like"], ["total", "set a total on"]];

export class WhatIf {
  /** @param {View} view */
  constructor(view) {
    this._view = view;
    this._query = "";
    /** @type {string[]} */
    this._changes = [];
    this._list = h("ul", { class: "changes" });
    this._kind = h("select", { "aria-label": "Change" }, KINDS.map(([value, text]) => h("option", { value }, text)));
    this._count = h("input", { "aria-label": "How many", value: "10", size: 3, inputmode: "numeric" });
    this._provider = h("input", { "aria-label": "Provider to change", class: "mono", placeholder: "host", size: 16, spellcheck: "false" });
    this._class = h("input", { "aria-label": "Class to change", class: "mono", placeholder: "class", list: "classes", size: 10, spellcheck: "false" });
    this._total = h("input", { "aria-label": "New total", placeholder: "total", size: 6, inputmode: "numeric" });
    this._kind.addEventListener("change", () => this._fields());
    this.element = h("form", { class: "whatif", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); this._add(); } },
      h("fieldset", {}, h("legend", {}, "what if…"), this._list,
        h("div", { class: "change" }, this._kind, this._count, this._provider, this._class, this._total, h("button", {}, "try"))));
    this._fields();
  }

  _fields() {
    const kind = this._kind.value;
    this._count.hidden = kind !== "add";
    this._class.hidden = this._total.hidden = kind !== "total";
  }

  _add() {
    const provider = this._provider.value.trim();
    if (!provider) return this._provider.focus();
    const kind = this._kind.value;
    const words = kind === "add" ? [kind, this._count.value, provider] : kind === "total" ? [kind, this._class.value, this._total.value, provider] : [kind, provider];
    this._provider.value = "";
    this._view.ask({ change: [...this._changes, words.join(" ")] });
  }

  /** @param {URLSearchParams} asked @param {string} query */
  show(asked, query) {
    this._query = query;
    this._changes = asked.getAll("change");
    put(this._list, this._changes.map((change, place) => h("li", {}, described(change), " ",
      h("button", { type: "button", class: "quiet", "aria-label": `Leave out: ${described(change)}`, onclick: () => this._view.ask({ change: this._changes.filter((_, other) => other !== place) }) }, "✕"))));
  }

  _body() {
    return { changes: this._changes.map(asJson), ask: [{ capacity: this._query }, { explain: this._query }] };
  }

  /** @returns {Shown | null} */
  foot() {
    if (this._changes.length === 0) return null;
    return { url: address("roost/whatif"), body: this._body(), command: command("whatif", "capacity", ...this._changes.flatMap(asOptions), "--from-query", this._query) };
  }

  /**
   * Before and after; nothing without a change.
   * @param {AbortSignal} signal
   */
  async ask(signal) {
    if (this._changes.length === 0) return null;
    try {
      const { answers, changes } = await post(address("roost/whatif"), this._body(), signal);
      const [capacity, explanation] = answers;
      return h("section", { class: "before-after" }, h("h2", {}, "What if"),
        changes.map((/** @type {any} */ change) => h("p", { class: change.applied ? "quiet" : "missing" }, change.text)),
        h("div", { class: "totals" }, side("now", capacity.before), h("span", { class: "arrow", "aria-hidden": "true" }, "→"), side("after it", capacity.after), difference(capacity)),
        explanation.after.feasible ? null : h("p", { class: "missing" }, explanation.after.reason.text));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return h("div", { class: "state", role: "alert" }, h("h2", {}, "This change cannot be tried"), h("p", {}, error.message));
    }
  }
}

/** @param {string} when @param {{fits: number, exact: boolean}} capacity */
function side(when, capacity) {
  return h("div", { class: "figure" }, h("strong", {}, (capacity.exact ? "" : "at least ") + whole(capacity.fits)), h("span", {}, `more fit ${when}`));
}

/** @param {{before: {fits: number}, after: {fits: number}}} capacity */
function difference({ before, after }) {
  const change = after.fits - before.fits;
  const words = change === 0 ? "no difference" : change > 0 ? "more" : "fewer";
  return h("div", { class: `figure ${change < 0 ? "missing" : "good"}` }, h("strong", {}, change === 0 ? "±0" : whole(Math.abs(change))), h("span", {}, words));
}

/**
 * The words of a change: its kind, its numbers, and the provider, whose name may have spaces.
 * @param {string} change
 */
function parts(change) {
  const [kind, ...rest] = change.split(" ");
  const numbers = kind === "add" ? 1 : kind === "total" ? 2 : 0;
  return { kind, values: rest.slice(0, numbers), provider: rest.slice(numbers).join(" ") };
}

/** @param {string} change */
function described(change) {
  const { kind, values, provider } = parts(change);
  if (kind === "add") return `add ${values[0]} like ${provider}`;
  if (kind === "total") return `${values[1]} ${values[0]} on ${provider}`;
  return `${kind} ${provider}`;
}

/** @param {string} change */
function asJson(change) {
  const { kind, values, provider } = parts(change);
  if (kind === "add") return { add: { like: provider, count: Number(values[0]) } };
  if (kind === "total") return { inventory: { provider, resource_class: values[0], total: Number(values[1]) } };
  return { [kind]: provider };
}

/** @param {string} change */
function asOptions(change) {
  const { kind, values, provider } = parts(change);
  if (kind === "add") return ["--add-host", `${values[0]}*${provider}`];
  if (kind === "total") return ["--set", `${provider}:${values[0]}=${values[1]}`];
  return [`--${kind}`, provider];
}
