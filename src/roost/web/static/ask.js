// Ask: a request as a form and as a query string, and beside it where it fits, or why nowhere.

import { address, get, Refusal } from "./api.js";
import { drawAnswer, LIMIT } from "./answers.js";
import { h, put } from "./dom.js";
import { command } from "./frame.js";
import { build, parse } from "./query.js";
import { RequestForm } from "./request_form.js";
import { WhatIf } from "./whatif.js";

/** @type {Page} */
export const page = { title: "Ask", show };

/** @type {[string, string][]} */
const EXAMPLES = [
  ["4 VCPU and 8 GB", "resources=VCPU:4,MEMORY_MB:8192"],
  ["a router near its port", "resources_cpu=PCPU:24,CUSTOM_HUGE_PAGES_1G:64&required_cpu=HW_CPU_X86_AVX512F&resources_port=SRIOV_NET_VF:4&required_port=CUSTOM_PHYSNET_NORTH&group_policy=none&same_subtree=_cpu,_port"],
  ["a GPU beside 8 CPUs", "resources_gpu=PGPU:1&resources_cpu=PCPU:8,MEMORY_MB:16384&group_policy=none"],
];

/** @param {View} view */
function show(view) {
  const text = h("textarea", { id: "query", class: "mono", rows: 2, spellcheck: "false", "aria-label": "Query string", placeholder: "Paste a query string, or a line of a Nova log that has one" });
  const form = new RequestForm((pairs) => askFor(build(pairs)));
  const host = h("input", { name: "provider", class: "mono", size: 20, placeholder: "host", "aria-label": "Why not this host?", spellcheck: "false" });
  const whatif = new WhatIf(view);
  const answer = h("div", { class: "answer", "aria-live": "polite" });
  const submit = h("button", { type: "button", onclick: () => askFor(build(parse(text.value))) }, "Ask");
  put(view.filters, h("div", { class: "row query" }, h("label", { for: "query" }, "query"), text, submit));
  put(view.main, h("div", { class: "ask" },
    h("div", { class: "asking" }, form.element,
      h("fieldset", {}, h("legend", {}, "why not this host?"), h("label", { class: "field" }, h("span", { class: "label" }, "host"), host)),
      whatif.element),
    answer));
  form.offerNames(view.signal).catch(() => {});

  const askFor = (/** @type {string} */ query) => view.ask({ query });
  text.addEventListener("change", () => askFor(build(parse(text.value))));
  // The text has what was pasted only after this event.
  text.addEventListener("paste", () => setTimeout(() => askFor(build(parse(text.value)))));
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      askFor(build(parse(text.value)));
    }
  });
  host.addEventListener("change", () => view.ask({ provider: host.value.trim() }));

  let asking = new AbortController();
  view.signal.addEventListener("abort", () => asking.abort());
  let formShows = "";

  return async () => {
    const asked = view.asked();
    const query = asked.get("query") ?? "";
    const provider = asked.get("provider") ?? "";
    if (document.activeElement !== text || build(parse(text.value)) !== query) text.value = query;
    host.value = provider;
    if (formShows !== query || query === "") form.show(parse(query));
    formShows = query;
    whatif.show(asked, query);
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    delete answer.dataset.query;
    if (!query) {
      view.foot({ url: address("roost/candidates", { resources: "VCPU:1" }), command: command("candidates", "VCPU=1") });
      return put(answer, welcome());
    }
    answer.setAttribute("aria-busy", "true");
    try {
      const found = await ask(query, provider, signal);
      const imagined = await whatif.ask(signal);
      put(answer, imagined, imagined && h("h2", {}, "Now, without the change"), await drawAnswer(found, view, signal));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      put(answer, h("div", { class: "state", role: "alert" }, h("h2", {}, "The server does not take this request"), h("p", {}, error.message)));
    }
    answer.removeAttribute("aria-busy");
    answer.dataset.query = query;
    view.foot(whatif.foot() ?? {
      url: found(query, provider),
      command: provider ? command("why", provider, "--from-query", query) : command("explain", "--from-query", query),
    });
  };
}

/** @param {string} query @param {string} provider */
function found(query, provider) {
  const url = address(`roost/explain?${query}`);
  if (provider) url.searchParams.set("provider", provider);
  return url;
}

/** @param {string} query @param {string} provider @param {AbortSignal} signal */
async function ask(query, provider, signal) {
  const [candidates, explanation, capacity] = await Promise.all([
    get(limited(query), signal),
    offered(found(query, provider), signal),
    offered(address(`roost/capacity?${query}`), signal),
  ]);
  return { query, provider, candidates, explanation, capacity };
}

/** The answer; `null` if the server has no such route. @param {URL} url @param {AbortSignal} signal */
async function offered(url, signal) {
  try {
    return await get(url, signal);
  } catch (error) {
    if (error instanceof Refusal && error.isLacking) return null;
    throw error;
  }
}

/** @param {string} query */
function limited(query) {
  const url = address(`roost/candidates?${query}`);
  if (!url.searchParams.has("limit")) url.searchParams.set("limit", String(LIMIT));
  return url;
}

function welcome() {
  return h("div", { class: "state" }, h("h2", {}, "Where would it fit?"),
    h("p", {}, "Say what a consumer takes, at the left or as a query string above. The answer has the places, how many more fit, and what stands in the way."),
    h("p", {}, "For example:"),
    h("ul", { class: "examples" }, EXAMPLES.map(([name, query]) => h("li", {}, h("a", { href: `./ask?${new URLSearchParams({ query })}` }, name)))));
}
