// The trees on which a candidate or a consumer stands, with what each box gives.

import { h } from "./dom.js";
import { drawSharing, drawTree, SHARES } from "./drawing.js";

// A larger tree is drawn without the parts that give nothing.
const BOXES_MAX = 12;

/** @param {Map<string, Given>} given by the uuid of the provider @param {Tree[]} trees */
export function picture(given, trees) {
  const drawn = { given, small: true };
  return h("div", { class: "picture" }, trees.map((tree) =>
    tree.providers.length === 1 && trees.length > 1 && tree.providers[0].traits.includes(SHARES)
      ? drawSharing(tree.providers[0], drawn) : drawTree(pruned(tree, given), drawn)));
}

/** @param {Tree} tree @param {Map<string, Given>} given @returns {Tree} */
function pruned(tree, given) {
  if (tree.providers.length <= BOXES_MAX) return tree;
  const byName = new Map(tree.providers.map((one) => [one.name, one]));
  const kept = new Set([tree.providers[0].name]);
  for (const provider of tree.providers) {
    if (!given.has(provider.uuid)) continue;
    for (let each = /** @type {typeof provider | undefined} */ (provider); each !== undefined; each = byName.get(each.parent ?? "")) kept.add(each.name);
  }
  return { ...tree, providers: tree.providers.filter((one) => kept.has(one.name)) };
}
