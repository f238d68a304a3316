// What the audit finds, as sentences. A button shows the request that mends one, and asks.

import { address, change, post, Refusal, wasAborted } from "./api.js";
import { h, put } from "./dom.js";
import { curlOf } from "./frame.js";
import { counted } from "./numbers.js";

const SHOWN_FIRST = 5;

export class Findings {
  /** @param {AbortSignal} signal */
  constructor(signal) {
    this._signal = signal;
    this._list = h("div", { role: "status" });
    this._known = h("textarea", { class: "mono", rows: 3, spellcheck: "false", "aria-label": "Uuids of all consumers that exist", placeholder: "uuids of all servers that exist, as of `openstack server list --all-projects -c ID -f value`" });
    this._type = h("input", { value: "INSTANCE", size: 12, "aria-label": "Type of these consumers" });
    this._body = {};
    this.element = h("section", { class: "findings", "aria-label": "Findings of the audit" }, this._list,
      h("details", {}, h("summary", { class: "quiet" }, "Find orphans"),
        h("form", { class: "orphans", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); void this._compare(); } },
          this._known, h("div", { class: "row" }, h("label", {}, h("span", {}, "type"), " ", this._type), h("button", {}, "Compare")))));
  }

  _compare() {
    const known = this._known.value.match(/[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}/gi) ?? [];
    const type = this._type.value.trim();
    this._body = { known_consumers: known, ...(type ? { types: [type] } : {}) };
    return this.look();
  }

  async look() {
    try {
      const { findings } = await post(address("roost/audit"), this._body, this._signal);
      this._show(findings);
    } catch (error) {
      if (!wasAborted(error)) put(this._list, h("p", { class: "missing" }, `There is no audit: ${error instanceof Refusal ? error.message : error}`));
    }
  }

  /** @param {Finding[]} found */
  _show(found, all = false) {
    if (found.length === 0) return put(this._list, h("p", { class: "quiet" }, h("span", { class: "good" }, "✓"), " The audit finds nothing wrong."));
    const shown = all ? found : found.slice(0, SHOWN_FIRST);
    put(this._list, h("h2", {}, `The audit finds ${counted(found.length, "thing")}`),
      h("ul", {}, shown.map((finding) => h("li", { class: finding.kind === "over_capacity" ? "is-over" : "" }, place(finding),
        finding.mend && h("button", { "aria-label": `Show the request that mends this: ${finding.text}`, onclick: () => this._offer(finding) }, "show the request")))),
      shown.length < found.length && h("button", { onclick: () => this._show(found, true) }, `Show all ${found.length}`));
  }

  /** @param {Finding} finding */
  _offer({ text, mend }) {
    if (mend === null) return;
    const url = address(mend.path);
    const said = h("p", { role: "alert" });
    const dialog = h("dialog", { "aria-labelledby": "mend-title", onclose: () => dialog.remove() });
    const send = async () => {
      try {
        await change(mend.method, url, mend.body);
        dialog.close();
        await this.look();
      } catch (error) {
        put(said, h("span", { class: "over" }, error instanceof Error ? error.message : String(error)));
      }
    };
    put(dialog, h("h2", { id: "mend-title" }, "Send this request?"), h("p", {}, text),
      h("pre", {}, `${mend.method} ${mend.path}${mend.body ? `\n\n${JSON.stringify(mend.body, null, 2)}` : ""}`),
      h("p", { class: "quiet" }, "Or send it with curl:"), h("pre", {}, curlOf(url, mend.method, mend.body)), said,
      h("div", { class: "row" }, h("button", { onclick: () => dialog.close(), autofocus: true }, "Leave it"), h("button", { class: "danger", onclick: send }, "Send it")));
    document.body.append(dialog);
    dialog.showModal();
  }
}

/** @param {Finding} finding */
function place({ text, provider, consumer }) {
  const link = provider ? `./tree?${new URLSearchParams({ provider: provider.name })}` : consumer ? `./consumers?${new URLSearchParams({ consumer })}` : null;
  return h("span", {}, text, " ", link && h("a", { href: link }, "look"));
}
