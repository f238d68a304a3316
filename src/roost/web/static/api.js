// The API of the server: requests with the caller's token, and refusals with their sentences.

/** The address of the service: what stands before `ui/`. */
export const SERVICE = new URL("../../", import.meta.url);

const VERSION = "placement 1.39";
// The server says what to send if nothing needs to be typed. The link of `roost ui` has a key. Else the token is typed, and lives only here.
let token = document.querySelector('meta[name="roost-token"]')?.getAttribute("content") || new URLSearchParams(location.hash.slice(1)).get("key") || "";
/** @type {(refusal: string) => Promise<string>} */
let askForToken = async () => "";
/** @type {Promise<string> | null} */
let asking = null;

const LACKING = "lacking";

/** What the server refuses, or that it does not answer. */
export class Refusal extends Error {
  /** @param {number} status 0 if there is no answer @param {string} text @param {string} [code] */
  constructor(status, text, code = "") {
    super(text);
    this.status = status;
    this.code = code;
  }

  /** Whether the server has no such route at all. */
  get isLacking() {
    return this.code === LACKING;
  }
}

/**
 * Tell how to get a token from the reader.
 * @param {(refusal: string) => Promise<string>} ask
 */
export function onMissingToken(ask) {
  askForToken = ask;
}

/**
 * Parameters without a value ask nothing.
 * @param {string} path
 * @param {Record<string, string | number | null | undefined>} [parameters]
 */
export function address(path, parameters = {}) {
  const url = new URL(path.replace(/^\//, ""), SERVICE);
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, String(value));
  }
  return url;
}

/** @param {URL} url @param {AbortSignal} [signal] @returns {Promise<any>} */
export function get(url, signal) {
  return send(url, { signal });
}

/** @param {URL} url @param {unknown} body @param {AbortSignal} [signal] @returns {Promise<any>} */
export function post(url, body, signal) {
  const headers = { "content-type": "application/json" };
  return send(url, { method: "POST", headers, body: JSON.stringify(body), signal });
}

/**
 * Send a request that changes data. Only what the reader has seen and allowed is sent.
 * @param {string} method
 * @param {URL} url
 * @param {unknown} body
 */
export function change(method, url, body) {
  const content = body === null || body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return send(url, { method, ...content });
}

/** @param {URL} url @param {RequestInit} request @returns {Promise<any>} */
async function send(url, request) {
  const response = await open(url, request);
  return response.status === 204 ? null : response.json();
}

/** The answer to a request that is not refused. @param {URL} url @param {RequestInit} request */
export async function open(url, request) {
  for (;;) {
    if (!token) token = await typedToken("");
    const response = await answer(url, request);
    if (response.status === 401) {
      token = "";
      token = await typedToken(await sentence(response));
      continue;
    }
    if (!response.ok) throw await refusal(response);
    return response;
  }
}

/**
 * The answer, with the headers that every request has.
 * @param {URL} url
 * @param {RequestInit} request
 */
export async function answer(url, request) {
  const headers = { "x-auth-token": token, "openstack-api-version": VERSION, accept: "application/json", ...request.headers };
  try {
    return await fetch(url, { cache: "no-store", credentials: "omit", ...request, headers });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refusal(0, `The server at ${SERVICE.origin} does not answer. Is \`roost serve\` running?`);
  }
}

/** @param {string} refused */
function typedToken(refused) {
  asking ??= askForToken(refused).finally(() => {
    asking = null;
  });
  return asking;
}

/** @param {Response} response */
async function refusal(response) {
  try {
    const [{ detail, code = "" }] = (await response.json()).errors;
    const path = new URL(response.url).pathname.slice(SERVICE.pathname.length - 1);
    const isLacking = response.status === 404 && path.startsWith("/roost/") && !code.startsWith("roost.");
    return isLacking ? new Refusal(404, `This server does not offer ${path}: it is an older Roost, or another placement service.`, LACKING) : new Refusal(response.status, String(detail).trim(), code);
  } catch {
    return new Refusal(response.status, `The server answers ${response.status} ${response.statusText}.`);
  }
}

/** @param {Response} response */
async function sentence(response) {
  return `The server refused it (${response.status}). Type another one.`;
}

/** @param {unknown} error */
export function wasAborted(error) {
  return error instanceof DOMException && error.name === "AbortError";
}
