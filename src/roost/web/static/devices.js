// Names for people of PCI devices whose ids stand in traits and classes: CUSTOM_PCI_10DE_20B0.

const IDS = /PCI_([0-9A-F]{4})_([0-9A-F]{4})$/;
/** @type {Record<"vendors" | "devices", Record<string, string>>} */
let known = { vendors: {}, devices: {} };
/** @type {Promise<void> | null} */
let reading = null;

/** @param {Provider} provider */
function names(provider) {
  return [...provider.traits, ...Object.keys(provider.inventories)];
}

/** Read the names, if one of these providers needs them. @param {Provider[]} providers */
export async function readDevices(providers) {
  if (!providers.some((one) => names(one).some((name) => IDS.test(name)))) return;
  reading ??= fetch(new URL("devices.json", import.meta.url)).then(async (response) => { known = await response.json(); });
  // Without the file, ids are all there is to show.
  await reading.catch(() => {});
}

/** The name of the first device that a provider names; empty if none is known. @param {Provider} provider */
export function deviceName(provider) {
  for (const name of names(provider)) {
    const [, vendor, device] = IDS.exec(name) ?? [];
    const words = [known.vendors[vendor], known.devices[`${vendor}_${device}`]].filter(Boolean);
    if (words.length > 0) return words.join(" ");
  }
  return "";
}
