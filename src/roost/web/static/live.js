// Life: changes as the server writes them, over one stream.

import { address, open, Refusal } from "./api.js";

const PAUSE_MILLISECONDS = 1000;
const PAUSE_AFTER_FAILURE = 3000;

/**
 * Tell of each page of changes since a cursor, until the signal ends it. Hidden windows hold no stream: a browser has few connections.
 * @param {string} since
 * @param {string | null} root only changes of this tree
 * @param {(changes: Change[] | null) => unknown} tell gets `null` when the journal has lost the cursor
 * @param {AbortSignal} signal
 */
export async function follow(since, root, tell, signal) {
  let cursor = since;
  while (!signal.aborted) {
    let pause = PAUSE_MILLISECONDS;
    try {
      await seen(signal);
      for await (const page of pages(address("roost/changes", { since: cursor, root }), signal)) {
        cursor = page.next;
        if (page.changes.length > 0) await tell(page.changes);
      }
    } catch (error) {
      // An older server, or another one, has no stream: what is shown stays.
      if (signal.aborted || (error instanceof Refusal && error.status === 404)) return;
      if (error instanceof Refusal && error.status === 410) {
        cursor = "";
        await tell(null);
      }
      pause = PAUSE_AFTER_FAILURE;
    }
    await rest(pause, signal);
  }
}

/** The events of a stream; it ends when the window is hidden. @param {URL} url @param {AbortSignal} signal @returns {AsyncGenerator<ChangePage>} */
async function* pages(url, signal) {
  const ending = new AbortController();
  const end = () => { if (signal.aborted || document.hidden) ending.abort(); };
  signal.addEventListener("abort", end);
  document.addEventListener("visibilitychange", end);
  try {
    const response = await open(url, { headers: { accept: "text/event-stream" }, signal: ending.signal });
    const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
    const decoder = new TextDecoder();
    let text = "";
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      const events = (text + decoder.decode(read.value, { stream: true })).split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) {
        const data = event.split("\n").find((line) => line.startsWith("data: "));
        if (data) yield JSON.parse(data.slice("data: ".length));
      }
    }
  } finally {
    ending.abort();
    signal.removeEventListener("abort", end);
    document.removeEventListener("visibilitychange", end);
  }
}

/** Until the window is seen. @param {AbortSignal} signal @returns {Promise<void>} */
async function seen(signal) {
  while (document.hidden && !signal.aborted) await new Promise((resolve) => {
    document.addEventListener("visibilitychange", resolve, { once: true });
    signal.addEventListener("abort", resolve, { once: true });
  });
}

/** @param {number} milliseconds @param {AbortSignal} signal @returns {Promise<void>} */
function rest(milliseconds, signal) {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
