// Elements. All text goes through text nodes, so no data can become markup.

/**
 * An element with these attributes and children. `on...` is a listener, `css` sets properties of
 * its style, and `null` or `false` leaves an attribute out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/**
 * The same for SVG.
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, attributes, children);
  return element;
}

/** @param {HTMLElement | SVGElement} element @param {Attributes} attributes @param {(Child | Child[])[]} children */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else if (name === "css") {
      for (const [property, setting] of Object.entries(/** @type {object} */ (value))) {
        element.style.setProperty(property, String(setting));
      }
    } else if (name === "value" && element instanceof HTMLInputElement) {
      element.value = String(value);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) element.append(node(child));
  }
}

/** @param {Node | string | number} child */
function node(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

/**
 * Put these children in place of all that an element has.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function put(element, ...children) {
  const nodes = [];
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) nodes.push(node(child));
  }
  element.replaceChildren(...nodes);
}

/**
 * The element of the document with this id.
 * @param {string} id
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no element ${id}`);
  return found;
}

/**
 * A list of choices.
 * @param {string} name
 * @param {string} label
 * @param {[string, string][]} choices value and text
 * @param {string} chosen
 */
export function select(name, label, choices, chosen) {
  return h(
    "label", {}, h("span", {}, label), " ",
    h("select", { name }, choices.map(([value, text]) => h("option", { value, selected: value === chosen }, text))),
  );
}

/**
 * A function that runs once things have been quiet for some milliseconds.
 * @template {unknown[]} A
 * @param {number} milliseconds
 * @param {(...values: A) => void} act
 */
export function quietly(milliseconds, act) {
  let timer = 0;
  return (/** @type {A} */ ...values) => {
    clearTimeout(timer);
    timer = window.setTimeout(() => act(...values), milliseconds);
  };
}
