// The answer of Ask: candidates on their trees, capacity, funnel, misses, hints.

import { get } from "./api.js";
import { h, put } from "./dom.js";
import { groupName } from "./drawing.js";
import { counted, whole } from "./numbers.js";
import { picture } from "./picture.js";
import { treeAddress } from "./tree.js";

/** How many candidates a query without a limit shows. */
export const LIMIT = 60;

const DRAWN_FIRST = 6;
// How the sentence of a stage begins. Its numbers stand in their columns already.
const COUNTED = /^(Group \S+: )?\d+ (providers?( in \d+ trees?)?|trees?) /;

/** @param {Found} found @param {View} view @param {AbortSignal} signal */
export async function drawAnswer(found, view, signal) {
  const { explanation } = found;
  if (explanation === null) return [withoutReasons(found.candidates.allocation_requests.length), await candidates(found, signal)];
  return [
    verdict(found),
    explanation.feasible ? null : hints(explanation.hints, view),
    explanation.feasible && !found.provider ? await candidates(found, signal) : null,
    funnel(explanation, explanation.feasible),
    explanation.feasible ? null : misses(explanation.misses, view),
  ].flat();
}

/** What a server other than Roost can tell. @param {number} number */
function withoutReasons(number) {
  return h("div", { class: "verdict" }, h("h1", {}, number > 0 ? `It fits: ${number < LIMIT ? counted(number, "candidate") : `the first ${number} candidates`}` : "Nothing fits"),
    h("p", { class: "missing" }, "This server does not say why, and does not count how many more fit."));
}

/** @param {Found} found */
function verdict({ explanation, capacity, candidates, provider }) {
  if (!explanation.feasible) {
    const where = provider ? `Not on ${provider}` : "Nothing fits";
    return h("div", { class: "verdict" }, h("h1", {}, `${where}: ${lower(explanation.reason.text)}`),
      h("p", { class: "quiet" }, alone(explanation.groups)),
      provider && capacity.fits > 0 ? h("p", { class: "quiet" }, `Elsewhere ${whole(capacity.fits)} more fit.`) : null);
  }
  const many = capacity.exact ? whole(capacity.fits) : `at least ${whole(capacity.fits)}`;
  const number = candidates.allocation_requests.length;
  const below = number < LIMIT ? `${counted(number, "candidate")}:` : `The first ${number} candidates:`;
  const limit = capacity.limited_by?.text ?? "";
  if (provider) return h("div", { class: "verdict" }, h("h1", {}, `It fits on ${provider}.`));
  return h("div", { class: "verdict" }, h("h1", {}, h("span", { class: "good" }, many), capacity.fits === 1 ? " more fits" : " more of this request fit"),
    h("p", { class: "quiet" }, `${limit} ${below}`.trim()));
}

/**
 * How far each group comes by itself, if there are several.
 * @param {{group: string, funnel: Step[]}[]} groups
 */
function alone(groups) {
  if (groups.length < 2) return "";
  const words = groups.map(({ group, funnel }) => `${group === "" ? "the rest" : `group ${groupName(group)}`} has ${counted(funnel[funnel.length - 1].trees, "tree")}`);
  return `By itself, ${words.join(", ")}.`;
}

/** @param {string} text */
function lower(text) {
  return /^[A-Z][a-z]+ /.test(text) ? text[0].toLowerCase() + text.slice(1) : text;
}

// Candidates.

/** @param {Found} found @param {AbortSignal} signal */
async function candidates(found, signal) {
  /** @type {Candidate[]} */
  const requests = found.candidates.allocation_requests;
  const summaries = found.candidates.provider_summaries;
  const trees = new Map();
  const roots = new Set(Object.values(summaries).map((/** @type {any} */ summary) => summary.root_provider_uuid));
  await Promise.all([...roots].map(async (root) => { trees.set(root, await get(treeAddress(root), signal)); }));
  const names = new Map([...trees.values()].flatMap((/** @type {Tree} */ tree) => tree.providers.map((one) => /** @type {[string, string]} */ ([one.uuid, one.name]))));
  const rootOf = (/** @type {string} */ uuid) => summaries[uuid].root_provider_uuid;
  const list = h("ol", { class: "candidates" }, requests.map((candidate, place) =>
    h("li", {}, line(candidate, names), place < DRAWN_FIRST ? drawn(candidate, trees, rootOf) : null)));
  const rest = requests.length - DRAWN_FIRST;
  const more = rest > 0 && h("button", { onclick: (event) => {
    requests.forEach((candidate, place) => { if (place >= DRAWN_FIRST) list.children[place].append(drawn(candidate, trees, rootOf)); });
    /** @type {HTMLElement} */ (event.target).remove();
  } }, `Draw the other ${whole(rest)}`);
  return h("section", { "aria-label": "Candidates" }, list, more);
}

/**
 * The candidate as the documents of the Placement API list it.
 * @param {Candidate} candidate
 * @param {Map<string, string>} names
 */
function line(candidate, names) {
  const parts = Object.entries(candidate.allocations).map(([uuid, { resources }]) =>
    `${names.get(uuid) ?? uuid} (${Object.entries(resources).map(([name, amount]) => `${name}:${amount}`).join(", ")})`);
  const groups = Object.entries(candidate.mappings).map(([suffix, uuids]) => `${suffix || "''"}=${uuids.map((uuid) => names.get(uuid) ?? uuid).join("+")}`);
  return h("code", { class: "line", "data-mappings": groups.join(" ") }, parts.join(" + "));
}

/**
 * The trees that give, with the name of the group in each box that serves it.
 * @param {Candidate} candidate
 * @param {Map<string, Tree>} trees
 * @param {(uuid: string) => string} rootOf
 */
function drawn(candidate, trees, rootOf) {
  /** @type {Map<string, Given>} */
  const given = new Map();
  const several = Object.keys(candidate.mappings).length > 1;
  for (const [group, uuids] of Object.entries(candidate.mappings)) {
    for (const uuid of uuids) {
      const resources = candidate.allocations[uuid]?.resources ?? {};
      given.set(uuid, { groups: [...(given.get(uuid)?.groups ?? []), group], resources, several });
    }
  }
  const roots = [...new Set([...given.keys()].map(rootOf))];
  return picture(given, roots.map((root) => trees.get(root)).filter((tree) => tree !== undefined));
}

// The funnel.

/** @param {any} explanation @param {boolean} folded */
function funnel(explanation, folded) {
  /** @type {{group: string, alternative?: number, funnel: Step[]}[]} */
  const groups = explanation.groups;
  const most = Math.max(1, ...groups.flatMap((each) => each.funnel.map((step) => step.trees)), ...explanation.trees.map((/** @type {Step} */ step) => step.trees));
  const tables = groups.map((each) => {
    const other = each.alternative ? `, alternative ${each.alternative}` : "";
    return steps(each.group === "" ? "The request" : `Group ${groupName(each.group)}${other}`, each.funnel, most);
  });
  tables.push(steps("Together", explanation.trees, most));
  return h("details", { class: "funnel", open: !folded }, h("summary", {}, h("h2", {}, "What each stage leaves"), h("span", { class: "quiet" }, " providers · trees")), tables);
}

/** @param {string} title @param {Step[]} funnel @param {number} most */
function steps(title, funnel, most) {
  let before = most;
  // A stage that leaves all it gets has nothing to tell.
  const telling = funnel.filter((step, place) => place === 0 || step.trees !== funnel[place - 1].trees || step.providers !== funnel[place - 1].providers);
  const rows = telling.map((step) => {
    const lost = step.trees === 0 && before > 0;
    before = step.trees;
    return h("tr", { class: lost ? "lost" : "" },
      h("th", { scope: "row" }, step.stage),
      h("td", { class: "number" }, step.providers === undefined ? "" : whole(step.providers)),
      h("td", { class: "number" }, whole(step.trees)),
      h("td", { class: "funnel-bar" }, h("span", { "aria-hidden": "true", css: { width: `${(100 * step.trees) / most}%` } })),
      h("td", { class: "text", title: step.text }, step.text.replace(COUNTED, "")));
  });
  return h("table", {}, h("caption", {}, title),
    h("thead", { class: "unseen" }, h("tr", {}, h("th", { scope: "col" }, "stage"), h("th", { scope: "col", class: "number" }, "providers"), h("th", { scope: "col", class: "number" }, "trees"),
      h("td", {}), h("th", { scope: "col" }, "they"))),
    h("tbody", {}, rows));
}

// Misses and hints.

/** @param {any[]} found @param {View} view */
function misses(found, view) {
  if (found.length === 0) return null;
  return h("section", {}, h("h2", {}, "Nearest misses"), h("table", { class: "misses" }, h("tbody", {}, found.map((miss) => h("tr", {},
    h("th", { scope: "row" }, h("a", { class: "mono", href: `./tree?${new URLSearchParams({ provider: miss.root.name })}` }, miss.root.name)),
    h("td", {}, miss.lacks.map((/** @type {any} */ lack) => h("div", {}, lack.text))),
    h("td", {}, h("button", { class: "link", "aria-label": `Why not ${miss.root.name}?`, onclick: () => view.ask({ provider: miss.root.name }) }, "why?")))))));
}

/** @param {{text: string, query: string}[]} found @param {View} view */
function hints(found, view) {
  const list = h("div", { class: "hints" });
  const take = (/** @type {string} */ query) => { view.ask({ query }); window.scrollTo(0, 0); };
  put(list, found.map((hint) => h("button", { class: "hint", title: hint.query, onclick: () => take(hint.query) }, hint.text)));
  if (found.length === 0) put(list, h("p", { class: "quiet" }, "No small change of this request fits."));
  return h("section", {}, h("h2", {}, "What would fit"), list);
}
