// Names for people of PCI devices whose ids stand in traits and classes: CUSTOM_PCI_10DE_20B0.

/** @type {Record<string, string>} */
const VENDORS = {
  1002: "AMD", 1022: "AMD", "10DE": "NVIDIA", "10EE": "Xilinx", "1137": "Cisco", 1172: "Altera",
  "144D": "Samsung", "14E4": "Broadcom", "15B3": "Mellanox", "177D": "Marvell", "1AF4": "virtio", "1DA3": "Habana",
  "1DD8": "Pensando", "1E0F": "Kioxia", "1FC9": "Tehuti", 8086: "Intel", "19E5": "Huawei", "1924": "Solarflare",
};

/** @type {Record<string, string>} */
const DEVICES = {
  "1002_740C": "Instinct MI250X", "1002_740F": "Instinct MI210", "1002_74A1": "Instinct MI300X",
  "10DE_13F2": "Tesla M60", "10DE_15F8": "Tesla P100 PCIe 16GB", "10DE_1B38": "Tesla P40", "10DE_1BB3": "Tesla P4",
  "10DE_1DB1": "Tesla V100 SXM2 16GB", "10DE_1DB4": "Tesla V100 PCIe 16GB", "10DE_1DB5": "Tesla V100 SXM2 32GB",
  "10DE_1DB6": "Tesla V100 PCIe 32GB", "10DE_1EB8": "Tesla T4", "10DE_20B0": "A100 SXM4 40GB",
  "10DE_20B2": "A100 SXM4 80GB", "10DE_20B5": "A100 PCIe 80GB", "10DE_20F1": "A100 PCIe 40GB", "10DE_20B7": "A30",
  "10DE_2235": "A40", "10DE_2236": "A10", "10DE_2330": "H100 SXM5 80GB", "10DE_2331": "H100 PCIe",
  "10DE_2335": "H200 SXM", "10DE_26B5": "L40", "10DE_26B9": "L40S", "10DE_27B8": "L4",
  "15B3_1013": "ConnectX-4", "15B3_1015": "ConnectX-4 Lx", "15B3_1017": "ConnectX-5", "15B3_1018": "ConnectX-5 VF",
  "15B3_1019": "ConnectX-5 Ex", "15B3_101B": "ConnectX-6", "15B3_101D": "ConnectX-6 Dx", "15B3_101E": "ConnectX VF",
  "15B3_1021": "ConnectX-7", "15B3_A2D6": "BlueField-2", "15B3_A2DC": "BlueField-3",
  "8086_10FB": "82599 10 Gigabit", "8086_10ED": "82599 VF", "8086_1572": "X710", "8086_1583": "XL710",
  "8086_158B": "XXV710", "8086_154C": "X700 VF", "8086_1592": "E810-C", "8086_1593": "E810-C", "8086_159B": "E810-XXV",
  "8086_1889": "E800 VF", "8086_37C8": "C62x QuickAssist", "8086_19E2": "C3xxx QuickAssist", "8086_4940": "4xxx QuickAssist",
  "8086_0A54": "DC P4500 SSD", "144D_A804": "NVMe SM961/PM961", "144D_A808": "NVMe SM981/PM981", "10EE_5000": "Alveo U200",
};

/**
 * The name of the first device that one of these traits or classes names; empty if none does.
 * @param {string[]} names
 */
export function deviceName(names) {
  for (const name of names) {
    const match = /PCI_([0-9A-F]{4})_([0-9A-F]{4})$/.exec(name);
    if (match === null) continue;
    const [, vendor, device] = match;
    const words = [VENDORS[vendor], DEVICES[`${vendor}_${device}`]].filter(Boolean);
    if (words.length > 0) return words.join(" ");
  }
  return "";
}
