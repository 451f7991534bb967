// SPDX-License-Identifier: MIT
// The conversations that this browser keeps, in IndexedDB: one store for the texts and one for the
// list, so that the list is there without reading the texts. Within bounds: the conversations that
// were changed longest ago go first. A browser that keeps nothing has them until the page is closed.
import { readConversation, titleOf, type Conversation } from "./conversation";

/** A line of the list. */
export interface Entry {
  id: string;
  title: string;
  model: string;
  /** Milliseconds since 1970. */
  changed: number;
  /** Characters of the stored text. */
  size: number;
}

export interface History {
  /** Whether conversations are still there when the page has been closed. */
  readonly lasts: boolean;
  /** The last one changed first. */
  list(): Promise<Entry[]>;
  read(id: string): Promise<Conversation | null>;
  write(conversation: Conversation): Promise<void>;
  remove(id: string): Promise<void>;
}

export const kMostConversations = 200;
export const kMostCharacters = 64 << 20; // of all of them; an answer with a book in its question has a million

/** Those that no longer fit, when the one that was changed last is kept in any case. */
export function surplus(entries: Entry[], most = kMostConversations, characters = kMostCharacters): Entry[] {
  let size = 0;
  return [...entries].sort((a, b) => b.changed - a.changed).filter((entry, i) => {
    size += entry.size;
    return i > 0 && (i >= most || size > characters);
  });
}

export function entryOf(conversation: Conversation, text: string): Entry {
  const { id, model, changed } = conversation;
  return { id, title: titleOf(conversation), model, changed, size: text.length };
}

const byChange = (a: Entry, b: Entry) => b.changed - a.changed;

/** Until the page is closed. */
export function memoryHistory(): History {
  const all = new Map<string, { entry: Entry; text: string }>();
  return {
    lasts: false,
    list: async () => [...all.values()].map(({ entry }) => entry).sort(byChange),
    read: async (id) => {
      const text = all.get(id)?.text;
      return text === undefined ? null : readConversation(JSON.parse(text));
    },
    write: async (conversation) => {
      const text = JSON.stringify(conversation);
      all.set(conversation.id, { entry: entryOf(conversation, text), text });
      for (const { id } of surplus([...all.values()].map(({ entry }) => entry))) all.delete(id);
    },
    remove: async (id) => void all.delete(id),
  };
}

function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("the browser's storage failed"));
  });
}

function finished(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = transaction.onerror = () => reject(transaction.error ?? new Error("the browser's storage is full"));
  });
}

function openDatabase(): Promise<IDBDatabase> {
  const request = indexedDB.open("snapkv", 1);
  request.onupgradeneeded = () => {
    request.result.createObjectStore("entries", { keyPath: "id" });
    request.result.createObjectStore("texts");
  };
  return result(request);
}

interface Stores {
  entries: IDBObjectStore;
  texts: IDBObjectStore;
}

function databaseHistory(database: IDBDatabase): History {
  const begin = (mode: IDBTransactionMode) => {
    const transaction = database.transaction(["entries", "texts"], mode);
    return { transaction, entries: transaction.objectStore("entries"), texts: transaction.objectStore("texts") };
  };
  // Committed at once: a page that is reloaded or closed before its transaction ended by itself loses the change.
  const change = (make: (stores: Stores) => void) => {
    const { transaction, ...stores } = begin("readwrite");
    make(stores);
    transaction.commit();
    return finished(transaction);
  };
  const erase = ({ entries, texts }: Stores, id: string) => {
    entries.delete(id);
    texts.delete(id);
  };
  const list = async () => (await result(begin("readonly").entries.getAll()) as Entry[]).sort(byChange);
  return {
    lasts: true,
    list,
    read: async (id) => {
      const text = await result(begin("readonly").texts.get(id)) as string | undefined;
      return text === undefined ? null : readConversation(JSON.parse(text));
    },
    write: async (conversation) => {
      const text = JSON.stringify(conversation);
      await change(({ entries, texts }) => {
        entries.put(entryOf(conversation, text));
        texts.put(text, conversation.id);
      });
      const old = surplus(await list());
      if (old.length > 0) await change((stores) => old.forEach(({ id }) => erase(stores, id)));
    },
    remove: (id) => change((stores) => erase(stores, id)),
  };
}

export async function openHistory(): Promise<History> {
  try {
    return databaseHistory(await openDatabase());
  } catch {
    return memoryHistory(); // a private window, say
  }
}
