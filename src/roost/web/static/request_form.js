// The request of Ask as a form, which is equal to the query string at all times.

import { address, get } from "./api.js";
import { h, put } from "./dom.js";
import { groupName } from "./drawing.js";
import { amounts, groupKey, suffixes } from "./query.js";

/** @type {Record<string, [string, string]>} label and placeholder */
const GROUP_FIELDS = {
  required: ["traits", "HW_CPU_X86_VMX,!CUSTOM_X"],
  member_of: ["aggregates", "uuid"],
  in_tree: ["in tree of", "provider"],
  in_subtree: ["below", "provider"],
  or_resources: ["or takes", "VCPU:2"],
};
/** @type {Record<string, [string, string]>} */
const REQUEST_FIELDS = {
  same_subtree: ["together", "_cpu,_port"],
  isolate: ["apart", "_a,_b"],
  root_required: ["root has", "COMPUTE_NODE"],
  group_policy: ["policy", "none"],
  limit: ["at most", "10"],
  order: ["order", "pack"],
};

export class RequestForm {
  /** @param {(pairs: Pair[]) => void} changed */
  constructor(changed) {
    this._changed = changed;
    /** @type {Pair[]} */
    this._pairs = [];
    this._groups = h("div", { class: "groups-form" });
    this._classes = h("datalist", { id: "classes" });
    this._traits = h("datalist", { id: "traits" });
    this.element = h("form", { class: "request", "aria-label": "Request", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
      this._groups, this._classes, this._traits);
  }

  /** Offer the names that the server knows. @param {AbortSignal} signal */
  async offerNames(signal) {
    const [overview, traits] = await Promise.all([
      get(address("roost/overview", { page_limit: 1 }), signal),
      get(address("traits", { associated: "true" }), signal),
    ]);
    put(this._classes, Object.keys(overview.totals).map((value) => h("option", { value })));
    put(this._traits, traits.traits.map((/** @type {string} */ value) => h("option", { value })));
  }

  /** @param {Pair[]} pairs */
  show(pairs) {
    this._pairs = pairs.map((pair) => ({ ...pair }));
    this._draw();
  }

  _draw() {
    const focused = document.activeElement?.id;
    const known = suffixes(this._pairs);
    const shown = known.length > 0 ? known : [""];
    put(this._groups, shown.map((suffix) => this._group(suffix)), this._together(), this._actions(known));
    if (focused) document.getElementById(focused)?.focus();
  }

  /** @param {string} suffix */
  _group(suffix) {
    const mine = this._pairs.filter(({ key }) => groupKey(key)?.suffix === suffix);
    const takes = mine.find(({ key }) => groupKey(key)?.name === "resources");
    const rest = mine.filter((pair) => pair !== takes);
    const missing = ["required", "member_of", "in_tree"].filter((name) => !rest.some(({ key }) => key === name + suffix));
    const title = suffix === "" ? "the request" : `group ${groupName(suffix)}`;
    return h("fieldset", { "data-group": suffix }, h("legend", {}, title, suffix === "" && h("span", { class: "quiet" }, " · any providers of a tree")),
      this._takes(suffix, takes), rest.map((pair) => this._field(pair, GROUP_FIELDS[groupKey(pair.key)?.name ?? ""] ?? [pair.key, ""])),
      h("div", { class: "adds" },
        missing.map((name) => this._button(`+ ${GROUP_FIELDS[name][0]}`, () => this._add({ key: name + suffix, value: "" }))),
        suffix !== "" && this._button("remove group", () => this._replace(this._pairs.filter((pair) => !mine.includes(pair))))));
  }

  /** @param {string} suffix @param {Pair | undefined} takes */
  _takes(suffix, takes) {
    const parts = takes === undefined || takes.value === "" ? [] : amounts(takes.value);
    const change = (/** @type {[string, string][]} */ changed) => {
      const value = changed.filter(([name]) => name !== "").map(([name, amount]) => `${name}:${amount || 1}`).join(",");
      if (takes === undefined) this._pairs.unshift({ key: `resources${suffix}`, value });
      else takes.value = value;
      this._replace(this._pairs.filter((pair) => pair.value !== "" || pair !== takes));
    };
    const rows = [...parts, /** @type {[string, string]} */ (["", ""])].map(([name, amount], place) => {
      const edit = (/** @type {string} */ newName, /** @type {string} */ newAmount) =>
        change([...parts.slice(0, place), [newName.trim(), newAmount.trim()], ...parts.slice(place + 1)]);
      const nameField = h("input", { id: `class${suffix}-${place}`, value: name, list: "classes", placeholder: "+ class", "aria-label": "Resource class", class: "mono", spellcheck: "false" });
      const amountField = h("input", { id: `amount${suffix}-${place}`, value: amount, inputmode: "numeric", "aria-label": name ? `Amount of ${name}` : "Amount", size: 6, class: "amount" });
      nameField.addEventListener("change", () => edit(nameField.value, amountField.value));
      amountField.addEventListener("change", () => { if (nameField.value) edit(nameField.value, amountField.value); });
      return h("div", { class: "take" }, nameField, name !== "" && amountField,
        name !== "" && h("button", { type: "button", class: "quiet", "aria-label": `Take no ${name}`, onclick: () => edit("", "") }, "✕"));
    });
    return h("div", { class: "field" }, h("span", { class: "label" }, "takes"), h("div", { class: "takes" }, rows));
  }

  _together() {
    const mine = this._pairs.filter(({ key }) => groupKey(key) === null);
    if (mine.length === 0) return null;
    return h("fieldset", {}, h("legend", {}, "all together"),
      mine.map((pair) => this._field(pair, REQUEST_FIELDS[pair.key] ?? [pair.key, ""])));
  }

  /** @param {Pair} pair @param {[string, string]} words */
  _field(pair, [label, hint]) {
    const place = this._pairs.indexOf(pair);
    const list = pair.key.includes("required") ? "traits" : null;
    const input = h("input", { id: `field-${place}-${pair.key}`, value: pair.value, placeholder: hint, class: "mono", list, spellcheck: "false" });
    input.addEventListener("change", () => {
      pair.value = input.value.replace(/\s*,\s*/g, ",").trim();
      this._replace(this._pairs.filter((each) => each !== pair || each.value !== ""));
    });
    return h("label", { class: "field" }, h("span", { class: "label" }, label), input);
  }

  /** @param {string[]} known */
  _actions(known) {
    const missing = ["group_policy", "same_subtree", "root_required"].filter((name) => !this._pairs.some(({ key }) => key === name));
    const useful = known.filter(Boolean).length > 1 ? missing : missing.filter((name) => name === "root_required");
    return h("div", { class: "adds" },
      this._button("+ group", () => this._add({ key: `resources${this._nextSuffix(known)}`, value: "" }, false)),
      useful.map((name) => this._button(`+ ${REQUEST_FIELDS[name][0]}`, () => this._add({ key: name, value: name === "group_policy" ? "none" : "" }))));
  }

  /** @param {string[]} known */
  _nextSuffix(known) {
    for (let number = 1; ; number += 1) if (!known.includes(`_${number}`)) return `_${number}`;
  }

  /** @param {string} text @param {() => void} act */
  _button(text, act) {
    return h("button", { type: "button", class: "quiet", onclick: act }, text);
  }

  /**
   * A field without a value is no part of the query, so only the form shows it.
   * @param {Pair} pair
   */
  _add(pair, tell = pair.value !== "") {
    this._pairs.push(pair);
    if (tell) this._replace(this._pairs);
    else this._draw();
    const place = pair.key.startsWith("resources") ? `class${pair.key.slice("resources".length)}-0` : `field-${this._pairs.length - 1}-${pair.key}`;
    document.getElementById(place)?.focus();
  }

  /** @param {Pair[]} pairs */
  _replace(pairs) {
    this._pairs = pairs;
    this._draw();
    this._changed(pairs);
  }
}
