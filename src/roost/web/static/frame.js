// What all pages have around them: search, health, theme, token, and the foot.

import { address, answer, get, onMissingToken, post, Refusal, SERVICE } from "./api.js";
import { byId, h, put, quietly } from "./dom.js";
import { counted, isUuid } from "./numbers.js";

/** @param {(path: string) => void} go */
export function setUpFrame(go) {
  setUpToken();
  setUpTheme();
  setUpSearch(go);
  setUpHealth();
}

// The token.

function setUpToken() {
  const dialog = /** @type {HTMLDialogElement} */ (byId("token"));
  const text = /** @type {HTMLInputElement} */ (byId("token-text"));
  onMissingToken((refused) => {
    if (refused) put(byId("token-why"), refused);
    text.value = "";
    dialog.showModal();
    return new Promise((resolve) => {
      const close = () => {
        if (!text.value) {
          dialog.showModal();
          return;
        }
        dialog.removeEventListener("close", close);
        resolve(text.value);
        text.value = "";
      };
      dialog.addEventListener("close", close);
    });
  });
}

// Light and dark.

function setUpTheme() {
  const root = document.documentElement;
  const kept = localStorage.getItem("theme");
  if (kept) root.dataset.theme = kept;
  byId("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
  });
}

// The search box.

/** @param {(path: string) => void} go */
function setUpSearch(go) {
  const text = /** @type {HTMLInputElement} */ (byId("search-text"));
  const list = byId("search-found");
  let chosen = -1;
  let looking = new AbortController();

  const close = () => {
    list.hidden = true;
    text.setAttribute("aria-expanded", "false");
    text.removeAttribute("aria-activedescendant");
    chosen = -1;
  };
  const leave = (/** @type {string} */ path) => {
    close();
    text.value = "";
    text.blur();
    go(path);
  };
  const choose = (/** @type {number} */ place) => {
    const entries = [...list.querySelectorAll('[role="option"]')];
    chosen = Math.max(-1, Math.min(place, entries.length - 1));
    entries.forEach((entry, index) => entry.setAttribute("aria-selected", String(index === chosen)));
    if (chosen < 0) text.removeAttribute("aria-activedescendant");
    else text.setAttribute("aria-activedescendant", entries[chosen].id);
  };
  const draw = (/** @type {Entry[]} */ found) => {
    put(list, found.map((entry, index) =>
      h("li", { role: "option", id: `found-${index}`, "data-path": entry.path, "aria-selected": "false",
        onmousedown: (event) => { event.preventDefault(); leave(entry.path); } },
      h("code", {}, entry.text), " ", h("small", {}, entry.kind))));
    if (found.length === 0) put(list, h("li", { class: "none" }, "Nothing found. Devices and consumers are found by their whole name or uuid."));
    list.hidden = false;
    text.setAttribute("aria-expanded", "true");
    choose(-1);
  };
  const look = quietly(120, async () => {
    looking.abort();
    looking = new AbortController();
    const wanted = text.value.trim();
    if (!wanted) return close();
    try {
      draw(await find(wanted, looking.signal));
    } catch (error) {
      if (error instanceof Refusal) put(list, h("li", { class: "none" }, error.message));
    }
  });

  text.addEventListener("input", () => look());
  text.addEventListener("blur", close);
  text.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Escape") close();
  });
  byId("search").addEventListener("submit", async (event) => {
    event.preventDefault();
    const wanted = text.value.trim();
    if (!wanted) return;
    const entry = list.querySelectorAll('[role="option"]')[Math.max(chosen, 0)];
    if (entry instanceof HTMLElement && !list.hidden) return leave(entry.dataset.path ?? "");
    const [first] = await find(wanted, new AbortController().signal);
    if (first) leave(first.path);
    else draw([]);
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof Element && event.target.closest("input, textarea, select");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      text.focus();
    }
  });
}

/**
 * What has this name or uuid: providers, then traits, then a consumer.
 * @param {string} wanted
 * @param {AbortSignal} signal
 * @returns {Promise<Entry[]>}
 */
async function find(wanted, signal) {
  if (isUuid(wanted)) return findUuid(wanted.toLowerCase(), signal);
  const custom = wanted.toUpperCase();
  const [roots, exact, traits] = await Promise.all([
    // A server without an overview finds whole names only.
    get(address("roost/overview", { name: `*${wanted.replaceAll("*", "")}*`, page_limit: 8 }), signal).catch(() => ({ columns: [], rows: [] })),
    get(address("resource_providers", { name: wanted }), signal),
    /^[A-Z0-9_]+$/.test(custom) ? get(address("traits", { name: `startswith:${custom}` }), signal) : { traits: [] },
  ]);
  const place = roots.columns.indexOf("name");
  const names = new Set([...exact.resource_providers.map((/** @type {any} */ one) => one.name),
    ...roots.rows.map((/** @type {any[]} */ row) => row[place])]);
  return [
    ...[...names].slice(0, 8).map((name) => treeOf(name, "provider")),
    ...traits.traits.slice(0, 6).map((/** @type {string} */ name) => ({
      text: name, kind: "trait", path: `./?${new URLSearchParams({ trait: name })}` })),
  ];
}

/** @param {string} uuid @param {AbortSignal} signal @returns {Promise<Entry[]>} */
async function findUuid(uuid, signal) {
  const [{ resource_providers: providers }, { allocations }, members] = await Promise.all([
    get(address("resource_providers", { uuid }), signal),
    get(address(`allocations/${uuid}`), signal),
    get(address("roost/overview", { aggregate: uuid, page_limit: 1 }), signal).catch(() => ({ roots: 0 })),
  ]);
  const found = providers.map((/** @type {any} */ one) => treeOf(one.name, "provider"));
  const [holds] = Object.keys(allocations);
  if (holds) found.push({ text: uuid, kind: "consumer", path: `./consumers?${new URLSearchParams({ consumer: uuid })}` });
  if (members.roots > 0) found.push({ text: uuid, kind: "aggregate", path: `./?${new URLSearchParams({ aggregate: uuid })}` });
  return found;
}

/** @param {string} name @param {string} kind */
function treeOf(name, kind) {
  return { text: name, kind, path: `./tree?${new URLSearchParams({ provider: name })}` };
}

// Health.

const HEALTH_MILLISECONDS = 10_000;

function setUpHealth() {
  const button = byId("health");
  const strip = byId("health-strip");
  button.setAttribute("aria-expanded", "false");
  button.setAttribute("aria-controls", "health-strip");
  button.addEventListener("click", () => {
    strip.hidden = !strip.hidden;
    button.setAttribute("aria-expanded", String(!strip.hidden));
    if (!strip.hidden) void look();
  });
  const look = async () => {
    const state = await readiness();
    button.className = `health ${state.ready ? "ready" : "away"}`;
    put(button, `● ${state.word}`);
    if (!strip.hidden) put(strip, state.lines, await findings());
  };
  void look();
  setInterval(() => { if (!document.hidden) void look(); }, HEALTH_MILLISECONDS);
}

/** @returns {Promise<{ready: boolean, word: string, lines: HTMLElement[]}>} */
async function readiness() {
  try {
    const response = await answer(address("readyz"), {});
    if (response.status === 404) return { ready: true, word: "answers", lines: [h("span", {}, "This server does not tell whether it is ready.")] };
    const body = await response.json();
    const checks = Object.entries(body.checks).map(([name, check]) =>
      h("span", { class: check.ok ? "" : "over" }, h("b", {}, name), " ", check.text));
    return { ready: response.ok, word: body.status, lines: [h("span", {}, h("b", {}, "version"), " ", body.version), ...checks] };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return { ready: false, word: "no answer", lines: [h("span", { class: "over" }, text)] };
  }
}

/** @type {Record<string, string>} */
const KINDS = {
  over_capacity: "over capacity", needs_cleaning: "needs cleaning", same_device_twice: "device twice",
  unreachable_sharing: "shares with nobody", empty_consumer: "empty consumer", orphan: "orphan",
};

/** @returns {Promise<HTMLElement[]>} */
async function findings() {
  try {
    const { counts, consumers } = await post(address("roost/audit"), {});
    const kinds = Object.entries(counts).map(([kind, count]) =>
      h("a", { class: kind === "over_capacity" ? "over" : "missing", href: "./consumers" }, h("b", {}, String(count)), ` ${KINDS[kind] ?? kind}`));
    const none = kinds.length === 0 ? [h("span", {}, "The audit finds nothing wrong.")] : kinds;
    return [...none, h("span", {}, counted(consumers, "consumer"))];
  } catch (error) {
    return error instanceof Refusal ? [h("span", { class: "missing" }, `No audit: ${error.message}`)] : [];
  }
}

// The foot.

/**
 * The request for a shell.
 * @param {URL} url
 * @param {string} method
 * @param {unknown} [body]
 */
export function curlOf(url, method, body) {
  const posted = body === undefined || body === null ? [] : ["-H 'content-type: application/json'", `-d ${quoted(JSON.stringify(body))}`];
  const other = method === "GET" || (method === "POST" && posted.length > 0) ? [] : [`-X ${method}`];
  return ["curl", ...other, "-H \"x-auth-token: $TOKEN\"", "-H 'openstack-api-version: placement 1.39'", ...posted, quoted(url.href)].join(" ");
}

/** @param {Shown} shown */
export function showFoot(shown) {
  const curl = curlOf(shown.url, shown.body === undefined ? "GET" : "POST", shown.body);
  const json = h("a", { href: shown.url.href, onclick: (event) => openJson(event, shown) }, shown.body === undefined ? "JSON" : "POST");
  put(byId("foot"),
    h("div", { class: "copies" },
      h("span", {}, json, " ", copyButton("address of the JSON", shown.url.href)),
      shown.command && h("span", {}, "command ", h("code", {}, shown.command), " ", copyButton("command", shown.command)),
      h("span", {}, "curl ", h("code", { class: "clipped" }, curl), " ", copyButton("curl command", curl))),
    shown.note ? h("div", { class: "note" }, shown.note) : null);
}

/**
 * A link sends no token, so the page asks, and opens the answer.
 * @param {Event} event
 * @param {Shown} shown
 */
async function openJson(event, shown) {
  event.preventDefault();
  const body = shown.body === undefined ? await get(shown.url) : await post(shown.url, shown.body);
  const link = URL.createObjectURL(new Blob([JSON.stringify(body, null, 1)], { type: "application/json" }));
  window.open(link, "_blank");
}

/** @param {string} what @param {string} text */
function copyButton(what, text) {
  const button = h("button", { class: "quiet copy", "aria-label": `Copy the ${what}`, title: `Copy the ${what}` }, "copy");
  button.addEventListener("click", async () => {
    put(button, (await copied(text)) ? "copied" : "not allowed");
    setTimeout(() => put(button, "copy"), 2000);
  });
  return button;
}

/**
 * Browsers have a clipboard only where the page came safely. Elsewhere a selection is copied.
 * @param {string} text
 */
async function copied(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return false;
    }
  }
  const field = h("textarea", { class: "skip", "aria-hidden": "true" });
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

/**
 * A word for a shell, whatever stands in it.
 * @param {string} text
 */
export function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

// States.

/**
 * Say what failed, and what to do.
 * @param {Element} place
 * @param {unknown} error
 * @param {() => void} again
 */
export function failure(place, error, again) {
  if (!(error instanceof Refusal)) console.error(error);
  const text = error instanceof Error ? error.message : String(error);
  put(place, h("div", { class: "state", role: "alert" }, h("h2", {}, "This did not work"), h("p", {}, text),
    h("p", {}, h("button", { onclick: again }, "Try again"))));
}

/**
 * A command that asks this server. `roost` asks 127.0.0.1:8778 without being told.
 * @param {...string} words
 */
export function command(...words) {
  const server = SERVICE.href.replace(/\/$/, "");
  const usual = /^http:\/\/(127\.0\.0\.1|localhost):8778$/.test(server);
  return ["roost", ...words, ...(usual ? [] : ["--url", server])].map(quoted).join(" ");
}
