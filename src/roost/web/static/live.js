// Life: what is shown follows the server.

import { get, wasAborted } from "./api.js";

// A change is seen within a second.
const PAUSE_MILLISECONDS = 600;
const PAUSE_AFTER_FAILURE = 3000;

/**
 * Look again and again, and tell each time that something differs. Hidden pages do not ask.
 * @template T
 * @param {URL} url
 * @param {(found: T) => void | Promise<void>} tell
 * @param {number} [pause]
 * @returns {() => void} ends it
 */
export function follow(url, tell, pause = PAUSE_MILLISECONDS) {
  const ending = new AbortController();
  void look(url, tell, pause, ending.signal);
  return () => ending.abort();
}

/**
 * @template T
 * @param {URL} url
 * @param {(found: T) => void | Promise<void>} tell
 * @param {number} pause
 * @param {AbortSignal} signal
 */
async function look(url, tell, pause, signal) {
  let known = "";
  while (!signal.aborted) {
    try {
      if (!document.hidden) {
        const found = await get(url, signal);
        const cursor = found.cursor;
        const state = JSON.stringify({ ...found, cursor: null });
        // Answers that differ only in the cursor look alike, unless the cursor is all there is.
        const seen = found.rows === undefined ? state : String(cursor);
        if (known && seen !== known) await tell(found);
        known = seen;
      }
      await rest(pause, signal);
    } catch (error) {
      if (signal.aborted || wasAborted(error)) return;
      await rest(PAUSE_AFTER_FAILURE, signal);
    }
  }
}

/**
 * @param {number} milliseconds
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function rest(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
