// The grid of roots. Only the rows of cells near the window exist, so ten thousand roots scroll.

import { byId, h, put } from "./dom.js";
import { strip } from "./drawing.js";
import { compact, counted, readable, whole } from "./numbers.js";
import { shortNames, members, sums } from "./roots.js";

const CELL_HEIGHT = 46;
const CELL_WIDTH_MIN = 84;
// How far beyond the window cells exist.
const AROUND = 300;

export class Grid {
  /** @param {View} view */
  constructor(view) {
    this.element = h("div", { class: "groups" });
    this._view = view;
    /** @type {Block[]} */
    this._blocks = [];
    /** @type {Root[]} all roots in the order of the page */
    this._roots = [];
    this._focused = 0;
    /** @type {string | null} */
    this._chosen = null;
    this._resourceClass = "";
    this._byRequest = false;
    this._waiting = false;
    const again = () => this._soon();
    window.addEventListener("scroll", again, { passive: true, signal: view.signal });
    const resized = new ResizeObserver(() => this._soon(true));
    resized.observe(this.element);
    view.signal.addEventListener("abort", () => resized.disconnect());
    this.element.addEventListener("keydown", (event) => this._move(event));
    for (const kind of ["mouseover", "focusin"]) this.element.addEventListener(kind, (event) => this._tell(event.target));
    for (const kind of ["mouseleave", "focusout", "click"]) this.element.addEventListener(kind, () => { byId("tip").hidden = true; });
  }

  /** @param {Group[]} groups @param {string} resourceClass @param {boolean} byRequest */
  show(groups, resourceClass, byRequest) {
    this._resourceClass = resourceClass;
    this._byRequest = byRequest;
    this._blocks = [];
    this._roots = [];
    this.element.className = `groups${groups.length > 1 ? " several" : ""}`;
    put(this.element, groups.map((group) => this._section(group, 2)));
    this._focused = Math.min(this._focused, Math.max(0, this._roots.length - 1));
    this._render(true);
  }

  /** @param {HTMLElement} state */
  say(state) {
    this._blocks = [];
    this._roots = [];
    this.element.className = "groups";
    put(this.element, state);
  }

  /** @param {string | null} uuid */
  choose(uuid) {
    this._chosen = uuid;
    for (const cell of this.element.querySelectorAll(".cell")) {
      cell.classList.toggle("chosen", cell.getAttribute("data-uuid") === uuid);
    }
  }

  /** @param {Group} group @param {2 | 3} level @returns {HTMLElement} */
  _section(group, level) {
    const inner = group.groups.map((each) => this._section(each, 3));
    const heading = group.title && h(level === 2 ? "h2" : "h3", { class: "group-head" }, group.title, " ", h("span", { class: "quiet" }, this._groupWords(group)));
    if (inner.length > 0) return h("section", { class: "group outer" }, heading, inner);
    const cells = h("div", { class: "cells", role: "group", "aria-label": group.title || "Roots" });
    const short = shortNames(group.roots);
    this._blocks.push({ element: cells, roots: group.roots, first: this._roots.length, short, columns: 1, from: 0, to: 0, cells: new Map() });
    this._roots.push(...group.roots);
    return h("section", { class: "group" }, heading, cells);
  }

  /** @param {Group} group */
  _groupWords(group) {
    const roots = members(group);
    const all = sums(roots);
    const name = this._resourceClass;
    const words = [counted(roots.length, "root"), `${readable(name, all.used)} of ${readable(name, all.used + all.free)} ${name} used`];
    if (this._byRequest) words.push(`${whole(all.fits)} more fit`);
    return words.join(" · ");
  }

  _soon(resized = false) {
    if (this._waiting) return;
    this._waiting = true;
    requestAnimationFrame(() => {
      this._waiting = false;
      this._render(resized);
    });
  }

  /** @param {boolean} whole */
  _render(whole) {
    // First all measures, then all changes: the browser lays out once.
    const places = this._blocks.map((block) => block.element.getBoundingClientRect());
    this._blocks.forEach((block, index) => {
      const { top, width } = places[index];
      if (width === 0) return;
      const columns = whole ? Math.max(1, Math.floor((width + 6) / (CELL_WIDTH_MIN + 6))) : block.columns;
      const rows = Math.ceil(block.roots.length / columns);
      const from = Math.max(0, Math.floor((-AROUND - top) / CELL_HEIGHT)) * columns;
      const to = Math.min(rows, Math.ceil((window.innerHeight + AROUND - top) / CELL_HEIGHT)) * columns;
      if (!whole && from === block.from && to === block.to) return;
      Object.assign(block, { columns, from, to });
      block.element.style.height = `${rows * CELL_HEIGHT}px`;
      const focused = document.activeElement?.getAttribute("data-uuid");
      const had = block.element.contains(document.activeElement);
      // Scrolling makes the cells that come, and drops those that go.
      for (const [place, cell] of block.cells) {
        if (!whole && place >= from && place < to) continue;
        cell.remove();
        block.cells.delete(place);
      }
      const coming = document.createDocumentFragment();
      for (let place = from; place < Math.min(to, block.roots.length); place += 1) {
        if (block.cells.has(place)) continue;
        const cell = this._cell(block, place);
        block.cells.set(place, cell);
        coming.append(cell);
      }
      block.element.append(coming);
      if (had && focused) this._cellOf(focused)?.focus({ preventScroll: true });
    });
  }

  /** @param {Block} block @param {number} place */
  _cell(block, place) {
    const root = block.roots[place];
    const column = place % block.columns;
    const row = Math.floor(place / block.columns);
    const number = this._byRequest ? (root.fits ?? 0) : root.free;
    const over = root.findings.has("over_capacity");
    const full = number === 0;
    const index = block.first + place;
    return h("a", {
      class: `cell${full ? " full" : ""}${over ? " is-over" : ""}${root.uuid === this._chosen ? " chosen" : ""}`,
      href: this._link(root),
      "data-uuid": root.uuid,
      "data-index": index,
      tabindex: index === this._focused ? 0 : -1,
      "aria-label": this._words(root),
      css: { left: `${(100 * column) / block.columns}%`, width: `calc(${100 / block.columns}% - 6px)`, top: `${row * CELL_HEIGHT}px` },
    },
    h("span", { class: "cell-name" }, block.short(root.name)),
    h("span", { class: "cell-number" }, over ? "over" : this._byRequest ? compact(number) : this._short(number)),
    strip(root.used, root.free, root.reserved, over));
  }

  /** @param {number} value */
  _short(value) {
    const words = readable(this._resourceClass, value);
    return words.length <= 7 ? words : compact(value);
  }

  /** @param {Root} root */
  _link(root) {
    const asked = this._view.asked();
    asked.set("root", root.uuid);
    return `./?${asked}`;
  }

  /** @param {Root} root */
  _words(root) {
    const name = this._resourceClass;
    const words = [`${root.name}: ${readable(name, root.used)} of ${readable(name, root.used + root.free)} ${name} used`, `${readable(name, root.free)} free`];
    if (root.reserved > 0) words.push(`${readable(name, root.reserved)} reserved`);
    words.push(`${readable(name, root.total)} in all`);
    if (this._byRequest) words.push(`${whole(root.fits ?? 0)} more fit`);
    if (root.findings.has("over_capacity")) words.push("over capacity");
    return words.join(" · ");
  }

  /** @param {string} uuid */
  _cellOf(uuid) {
    return /** @type {HTMLElement | null} */ (this.element.querySelector(`[data-uuid="${CSS.escape(uuid)}"]`));
  }

  /** @param {EventTarget | null} target */
  _tell(target) {
    const tip = byId("tip");
    const cell = target instanceof Element ? target.closest(".cell") : null;
    tip.hidden = cell === null;
    if (cell === null) return;
    put(tip, cell.getAttribute("aria-label"));
    const place = cell.getBoundingClientRect();
    const left = Math.min(place.left, document.documentElement.clientWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(8, left) + window.scrollX}px`;
    tip.style.top = `${place.bottom + 4 + window.scrollY}px`;
  }

  /** @param {KeyboardEvent} event */
  _move(event) {
    const cell = event.target instanceof Element ? event.target.closest(".cell") : null;
    if (cell === null) return;
    const index = Number(cell.getAttribute("data-index"));
    const block = this._blocks.find((each) => index < each.first + each.roots.length);
    const columns = block?.columns ?? 1;
    /** @type {Amounts} */
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, Home: -index, End: this._roots.length - 1 - index };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    this._focus(Math.max(0, Math.min(this._roots.length - 1, index + step)));
  }

  /** @param {number} index */
  _focus(index) {
    const before = this._cellOf(this._roots[this._focused]?.uuid ?? "");
    before?.setAttribute("tabindex", "-1");
    this._focused = index;
    const block = this._blocks.find((each) => index < each.first + each.roots.length);
    if (block === undefined) return;
    const top = block.element.getBoundingClientRect().top + Math.floor((index - block.first) / block.columns) * CELL_HEIGHT;
    if (top < 0 || top + CELL_HEIGHT > window.innerHeight) window.scrollBy(0, top - window.innerHeight / 2);
    this._render(false);
    const cell = this._cellOf(this._roots[index].uuid);
    cell?.setAttribute("tabindex", "0");
    cell?.focus({ preventScroll: true });
  }
}
