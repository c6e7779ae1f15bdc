import assert from "node:assert/strict";
import { test } from "node:test";
import { askAgainAfter, followStream, onAskAgain } from "../src/api/stream";

class Source extends EventTarget {
  static readonly made: Source[] = [];
  readonly CLOSED = 2;
  readyState = 0;
  readonly address: string;

  constructor(address: string) {
    super();
    this.address = address;
    Source.made.push(this);
  }

  close() {
    this.readyState = this.CLOSED;
  }
}

test("all is asked for again when a stream has lost something or was away, and not when it opens first", ({ mock }) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  Object.assign(globalThis, { EventSource: Source });
  let asked = 0;
  let heard = 0;
  const leave = onAskAgain(() => asked++);
  const close = followStream("stream", false, (source) => source.addEventListener("tasks", () => heard++));
  const last = () => Source.made.at(-1) ?? assert.fail();
  const after = (...events: string[]) => {
    events.forEach((name) => last().dispatchEvent(new Event(name)));
    return [asked, heard, Source.made.length];
  };
  assert.deepEqual(after("open", "tasks"), [0, 1, 1]);
  assert.deepEqual(after("lost"), [0, 1, 2], "another stream, which is not open yet");
  assert.equal(Source.made[0]?.readyState, 2);
  assert.deepEqual(after("open", "tasks"), [1, 2, 2]);
  assert.deepEqual(after("error", "error"), [1, 2, 2], "it is away");
  assert.deepEqual(after("open", "open"), [2, 2, 2], "it came back by itself");
  last().close();
  assert.deepEqual(after("error"), [3, 2, 2], "it was refused");
  mock.timers.tick(askAgainAfter - 1);
  assert.equal(Source.made.length, 2);
  mock.timers.tick(1);
  assert.deepEqual(after("open", "tasks"), [4, 3, 3], "it is asked for again after a while");
  last().close();
  assert.deepEqual(after("error"), [5, 3, 3]);
  close();
  mock.timers.tick(askAgainAfter);
  assert.equal(Source.made.length, 3, "nobody follows any more");
  followStream("stream", true, () => {});
  assert.deepEqual(after("open", "open"), [6, 3, 4], "the page is back in sight");
  leave();
  assert.deepEqual(after("open"), [6, 3, 4]);
  assert.equal(Source.made[2]?.readyState, 2);
});
