// One document for all pages: it finds the page of an address, and keeps the token between pages.

import { wasAborted } from "./api.js";
import { page as ask } from "./ask.js";
import { page as changes } from "./changes.js";
import { page as cloud } from "./cloud.js";
import { page as consumers } from "./consumers.js";
import { byId, put } from "./dom.js";
import { failure, setUpFrame, showFoot } from "./frame.js";
import { page as tree } from "./tree.js";

/** @type {Record<string, Page>} */
const PAGES = { "": cloud, ask, tree, consumers, changes };

const HERE = new URL("../", import.meta.url).pathname;

/** @type {{name: string, follow: () => Promise<void>, leaving: AbortController} | null} */
let open = null;

/** Show what the address asks for. */
async function show() {
  const name = location.pathname.slice(HERE.length);
  const page = PAGES[name] ?? cloud;
  if (open?.name !== name) {
    open?.leaving.abort();
    const leaving = new AbortController();
    put(byId("filters"));
    put(byId("content"));
    put(byId("foot"));
    byId("tip").hidden = true;
    open = { name, follow: async () => {}, leaving };
    for (const link of document.querySelectorAll("nav a")) {
      const path = new URL(/** @type {HTMLAnchorElement} */ (link).href).pathname.slice(HERE.length);
      if (path === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    open.follow = page.show(view(leaving.signal));
    window.scrollTo(0, 0);
  }
  document.title = `${page.title} - roost`;
  const shown = open;
  try {
    await shown.follow();
  } catch (error) {
    if (shown === open && !wasAborted(error)) failure(byId("content"), error, () => void show());
  }
}

/** @param {AbortSignal} signal @returns {View} */
function view(signal) {
  return {
    filters: byId("filters"),
    main: byId("content"),
    signal,
    asked: () => new URLSearchParams(location.search),
    foot: (shown) => {
      if (!signal.aborted) showFoot(shown);
    },
    ask: (changes, replace = false) => {
      const url = new URL(location.href);
      for (const [name, value] of Object.entries(changes)) {
        url.searchParams.delete(name);
        for (const each of [value].flat()) if (each) url.searchParams.append(name, each);
      }
      if (url.search !== location.search) go(url, replace);
    },
  };
}

/** @param {URL} url @param {boolean} [replace] */
function go(url, replace = false) {
  // The key of `roost ui` lasts for a reload.
  url.hash = location.hash.startsWith("#key=") ? location.hash : "";
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  void show();
}

/** @param {MouseEvent} event */
function followLink(event) {
  const link = /** @type {Element} */ (event.target).closest?.("a");
  const plain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  if (!link || !plain || event.defaultPrevented || link.target || link.hasAttribute("download")) return;
  const url = new URL(link.href);
  if (url.origin !== location.origin || !url.pathname.startsWith(HERE) || link.hash) return;
  if (PAGES[url.pathname.slice(HERE.length)] === undefined) return;
  event.preventDefault();
  go(url);
}

document.addEventListener("click", followLink);
window.addEventListener("popstate", () => void show());
setUpFrame((path) => go(new URL(path, new URL("../", import.meta.url))));
void show();
