// The row of what a page can be asked. Its fields are equal to the address.

import { h, select } from "./dom.js";

/**
 * A form with these fields; `fill` shows what is asked.
 * @param {View} view
 * @param {Field[]} fields
 * @param {Node[]} [more] what stands at the end of the row
 */
export function filterForm(view, fields, more = []) {
  const labels = fields.map(({ name, label, hint = "", size = 12, choices }) => choices
    ? select(name, label, choices, "")
    : h("label", {}, h("span", {}, label), " ", h("input", { name, placeholder: hint, size, spellcheck: "false" })));
  const form = h("form", { class: "row", onsubmit: (/** @type {Event} */ event) => event.preventDefault() }, labels,
    more.length > 0 && h("span", { class: "end" }, more));
  form.addEventListener("change", (event) => {
    const field = /** @type {HTMLInputElement} */ (event.target);
    if (field.name) view.ask({ [field.name]: field.value.trim() || null });
  });
  return Object.assign(form, {
    fill: (/** @type {URLSearchParams} */ asked) => {
      for (const field of /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("[name]"))) fillField(field, asked.get(field.name) ?? "");
    },
  });
}

/**
 * Show a value; a list of choices that lacks it gets it.
 * @param {HTMLInputElement | HTMLSelectElement} field
 * @param {string} value
 */
export function fillField(field, value) {
  if (field instanceof HTMLSelectElement && ![...field.options].some((option) => option.value === value)) field.append(h("option", { value }, value));
  field.value = value;
}
