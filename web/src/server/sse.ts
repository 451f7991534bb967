// SPDX-License-Identifier: MIT
// Splits a stream of server-sent events, which arrives in pieces of any size, into the data of each
// event.

export class EventParser {
  private rest = "";
  private data: string[] = [];

  /** The data of the events that end in this piece, without comments. */
  push(text: string): string[] {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop()!;
    const events: string[] = [];
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") {
        if (this.data.length > 0) events.push(this.data.join("\n"));
        this.data = [];
      } else if (line.startsWith("data:")) {
        this.data.push(line.slice(line[5] === " " ? 6 : 5));
      }
    }
    return events;
  }
}
