// Elements. Text enters the page here, and only as text.

/**
 * An element with attributes and children; strings become text. A function is a listener, as in
 * `{ onclick: () => … }`; attributes that are false, null or undefined are left out.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string | null)} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  fill_in(made, attributes, children);
  return made;
}

/**
 * The same of an SVG element.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string | null)} children
 * @returns {SVGElement}
 */
export function svg_element(tag, attributes = {}, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  fill_in(made, attributes, children);
  return made;
}

/**
 * @param {Element} made
 * @param {Record<string, any>} attributes
 * @param {(Node | string | null)[]} children
 */
function fill_in(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === 'function') made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children) {
    if (child !== null) made.append(child);
  }
}

/**
 * Saves a file that the page made.
 * @param {string} name
 * @param {Blob} blob
 */
export function download(name, blob) {
  const url = URL.createObjectURL(blob);
  element('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
