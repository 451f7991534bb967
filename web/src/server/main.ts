// SPDX-License-Identifier: MIT
// The page at / of `snapkv serve`: waits until the model is loaded, asks for an API key if the
// server requires one, then starts the chat.
import { el } from "../page";
import "../styles.css";
import { Api, ApiError } from "./api";
import { App } from "./app";
import { newConversation, readConversation } from "./conversation";
import { openHistory } from "./history";
import "./server.css";
import { readSettings } from "./settings";
import { keepInTab, keptInTab, keptSettings, takeOldConversation } from "./store";

const root = document.getElementById("page")!;
const api = new Api(keptInTab("key"));

function showState(...content: (HTMLElement | string)[]): void {
  root.replaceChildren(el("main", { class: "opening" }, el("h1", {}, "snapkv"), ...content));
}

/** Asks for the key and stores it; then calls `done`. */
function askForKey(parent: HTMLElement, message: string, done: () => void): void {
  parent.querySelector("form.key")?.remove();
  const input = el("input", { type: "password", id: "api-key", autocomplete: "current-password", required: "" });
  const form = el("form", { class: "key card", "aria-label": "API key" },
    el("p", { class: "error", role: "alert" }, message),
    el("label", { for: "api-key" }, "API key"), input, el("button", { type: "submit", class: "primary" }, "Use this key"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    api.key = input.value.trim();
    keepInTab("key", api.key);
    form.remove();
    done();
  });
  parent.append(form);
  input.focus();
}

async function start(): Promise<void> {
  try {
    const props = await api.props();
    document.title = `${props.model_alias} · snapkv`;
    const history = await openHistory();
    const old = readConversation({ ...newConversation(props.model_alias), ...takeOldConversation() });
    if (old && old.turns.length > 0) await history.write(old);
    const app = new App(api, props, readSettings(keptSettings(), props), history,
      (message) => askForKey(document.querySelector<HTMLElement>(".bottom")!, message, () => undefined));
    await app.mount(root);
  } catch (error) {
    const status = error instanceof ApiError ? error.status : -1;
    const { message } = error as Error;
    if (status === 401) {
      showState();
      askForKey(root.querySelector("main")!, api.key ? message : "This server asks for an API key.", () => void start());
    } else if (status === 503 || status === 0) {
      showState(el("p", { role: "status" }, status === 503 ? "The model is being loaded …" : `${message}; trying again …`));
      setTimeout(() => void start(), 1000);
    } else {
      showState(el("p", { class: "failure", role: "alert" }, message));
      throw error;
    }
  }
}

void start();
