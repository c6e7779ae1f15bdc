import assert from "node:assert/strict";
import { test } from "node:test";
import { ServiceError } from "../src/api/http";
import type { Draft, JSONObject, Saved } from "../src/api/types";
import { DraftSaver, type DraftStatus, pause } from "../src/runtime/draftSaver";

/** A saver with a clock and a service that the test moves. */
function scene(revision = 0) {
  const sent: { data: JSONObject; over: number | null; keepalive: boolean; answer: (saved: Saved) => void; refuse: (fault: unknown) => void }[] = [];
  const told: DraftStatus[] = [];
  const reads: { answer: (draft: Draft | null) => void; refuse: (fault: unknown) => void }[] = [];
  let timers: { at: number; callback: () => void }[] = [];
  let now = 0;
  const saver = new DraftSaver(
    {
      save: (data, over, keepalive) => new Promise<Saved>((answer, refuse) => sent.push({ data, over, keepalive, answer, refuse })),
      stored: () => new Promise<Draft | null>((answer, refuse) => reads.push({ answer, refuse })),
      tell: (status) => told.push(status),
      later: (milliseconds, callback) => {
        const timer = { at: now + milliseconds, callback };
        timers.push(timer);
        return () => (timers = timers.filter((each) => each !== timer));
      },
    },
    revision,
  );
  const wait = (milliseconds: number) => {
    now += milliseconds;
    const due = timers.filter((timer) => timer.at <= now);
    timers = timers.filter((timer) => timer.at > now);
    due.forEach((timer) => timer.callback());
  };
  const settle = () => new Promise((done) => setImmediate(done));
  const last = () => told.at(-1);
  const request = (index: number) => {
    const found = sent[index];
    assert.ok(found, `there is no request ${index}`);
    return found;
  };
  const read = (index: number) => {
    const found = reads[index];
    assert.ok(found, `the draft was not read ${index + 1} times`);
    return found;
  };
  /** A draft is sent, and whether it was saved is not known; the retry meets a draft of another revision. */
  const loseAnswer = async (fault: ServiceError, typed?: JSONObject) => {
    saver.change({ a: 1 });
    wait(pause);
    request(0).refuse(fault);
    await settle();
    if (typed) {
      saver.change(typed);
    }
    wait(2_000);
    request(1).refuse(new ServiceError(412, "Changed."));
    await settle();
  };
  return { saver, sent, told, reads, wait, settle, last, request, read, loseAnswer };
}

test("typing is saved once, when it pauses", () => {
  const { saver, sent, wait, request } = scene(3);
  saver.change({ a: 1 });
  wait(pause - 1);
  saver.change({ a: 2 });
  wait(pause - 1);
  assert.equal(sent.length, 0);
  wait(1);
  assert.equal(sent.length, 1);
  assert.deepEqual(request(0).data, { a: 2 });
  assert.equal(request(0).over, 3);
});

test("one request at a time; what is typed meanwhile follows over the new revision", async () => {
  const { saver, sent, wait, settle, last, request } = scene();
  saver.change({ a: 1 });
  wait(pause);
  saver.change({ a: 2 });
  saver.flush();
  wait(10 * pause);
  assert.equal(sent.length, 1);
  request(0).answer({ revision: 7, savedAt: 1 });
  await settle();
  assert.equal(sent.length, 2);
  assert.equal(request(1).over, 7);
  assert.deepEqual(request(1).data, { a: 2 });
  request(1).answer({ revision: 8, savedAt: 2 });
  await settle();
  assert.deepEqual(last(), { state: "saved", savedAt: 2 });
  assert.equal(saver.hasUnsaved, false);
});

test("a passing fault is tried again, later and later, with what is newest", async () => {
  const { saver, sent, wait, settle, last, request } = scene();
  saver.change({ a: 1 });
  wait(pause);
  request(0).refuse(new ServiceError(503, "Busy."));
  await settle();
  assert.deepEqual(last(), { state: "failed", message: "Busy.", again: true });
  wait(1_999);
  assert.equal(sent.length, 1);
  wait(1);
  request(1).refuse(new ServiceError(0, "Not reached."));
  await settle();
  wait(3_999);
  assert.equal(sent.length, 2);
  wait(1);
  assert.deepEqual(request(2).data, { a: 1 });
});

test("a refusal waits for the next change", async () => {
  const { saver, sent, wait, settle, last, request } = scene();
  saver.change({ a: 1 });
  wait(pause);
  request(0).refuse(new ServiceError(413, "Too large."));
  await settle();
  assert.deepEqual(last(), { state: "failed", message: "Too large.", again: false });
  wait(3_600_000);
  assert.equal(sent.length, 1);
  saver.change({ a: 2 });
  wait(pause);
  assert.equal(sent.length, 2);
});

test("after a conflict nothing is sent until the person decides", async () => {
  const { saver, sent, wait, settle, last, request } = scene(1);
  saver.change({ a: 1 });
  wait(pause);
  request(0).refuse(new ServiceError(412, "Changed."));
  await settle();
  assert.deepEqual(last(), { state: "conflict" });
  saver.change({ a: 2 });
  saver.flush();
  saver.leave(true);
  wait(3_600_000);
  assert.equal(sent.length, 1);
  saver.overwrite();
  assert.equal(request(1).over, null);
  assert.deepEqual(request(1).data, { a: 2 });
});

test("leaving the page sends the last words without waiting", async () => {
  const { saver, sent, wait, request } = scene(4);
  saver.leave(true);
  assert.equal(sent.length, 0, "nothing was typed");
  saver.change({ a: 1 });
  saver.leave(true);
  assert.equal(request(0).keepalive, true);
  assert.equal(request(0).over, 4);
  wait(pause);
  assert.equal(sent.length, 1, "the timer is gone");
});

test("closing waits for the request under way and sends nothing more", async () => {
  const { saver, sent, wait, settle, request } = scene();
  saver.change({ a: 1 });
  wait(pause);
  saver.change({ a: 2 });
  let closed = false;
  const closing = saver.close().then(() => (closed = true));
  await settle();
  assert.equal(closed, false);
  request(0).answer({ revision: 1, savedAt: 1 });
  await closing;
  wait(pause);
  saver.flush();
  assert.equal(sent.length, 1);
  saver.reopen({ a: 2 });
  wait(pause);
  assert.equal(request(1).over, 1);
});

test("a draft that could not be discarded goes on being saved", async () => {
  const { saver, sent, wait, settle, last, request } = scene(3);
  saver.change({ a: 1 });
  const refused = new ServiceError(503, "Busy.");
  let refuse: (fault: unknown) => void = () => {};
  const discarding = saver.discard(() => new Promise<void>((_, reject) => (refuse = reject)));
  await settle();
  saver.change({ a: 2 });
  wait(pause);
  assert.equal(sent.length, 0, "nothing is saved while it is discarded");
  refuse(refused);
  await assert.rejects(discarding, refused);
  saver.reopen();
  assert.deepEqual(last(), { state: "waiting" });
  wait(pause);
  assert.equal(request(0).over, 3);
  assert.deepEqual(request(0).data, { a: 2 });
});

test("after a draft was discarded the next one is the first", async () => {
  const { saver, sent, wait, settle, last, request } = scene(3);
  saver.change({ a: 1 });
  wait(pause);
  request(0).refuse(new ServiceError(412, "Changed."));
  await settle();
  await saver.discard(async () => {});
  assert.deepEqual(last(), { state: "idle" });
  assert.equal(saver.hasUnsaved, false);
  saver.reopen(); // the page could not be loaded anew
  wait(pause);
  assert.equal(sent.length, 1);
  saver.change({ a: 2 });
  wait(pause);
  assert.equal(request(1).over, 0);
});

const lost = [new ServiceError(0, "Not reached."), new ServiceError(504, "It is not known whether this was done.")];

test("a draft that was saved without an answer is no conflict", async () => {
  for (const fault of lost) {
    const { saver, sent, told, wait, settle, last, request, read, loseAnswer } = scene(3);
    await loseAnswer(fault);
    assert.equal(request(1).over, 3);
    assert.deepEqual(last(), { state: "saving" });
    read(0).answer({ revision: 7, savedAt: 5, data: { a: 1 } });
    await settle();
    assert.deepEqual(last(), { state: "saved", savedAt: 5 });
    assert.equal(saver.hasUnsaved, false);
    assert.equal(sent.length, 2);
    saver.change({ a: 2 });
    wait(pause);
    assert.equal(request(2).over, 7);
    assert.ok(told.every((status) => status.state !== "conflict"));
  }
});

test("what was typed since then follows over it", async () => {
  for (const fault of lost) {
    const { settle, last, request, read, loseAnswer } = scene();
    await loseAnswer(fault, { a: 2 });
    read(0).answer({ revision: 7, savedAt: 5, data: { a: 1 } });
    await settle();
    assert.equal(request(2).over, 7);
    assert.deepEqual(request(2).data, { a: 2 });
    request(2).answer({ revision: 8, savedAt: 6 });
    await settle();
    assert.deepEqual(last(), { state: "saved", savedAt: 6 });
  }
});

test("another draft is a conflict, also after a lost answer", async () => {
  for (const other of [{ revision: 7, savedAt: 5, data: { a: 9 } }, null]) {
    const { sent, settle, last, read, loseAnswer } = scene(3);
    await loseAnswer(new ServiceError(504, "Unknown."));
    read(0).answer(other);
    await settle();
    assert.deepEqual(last(), { state: "conflict" });
    assert.equal(sent.length, 2);
  }
});

test("an outcome that came leaves nothing to look for", async () => {
  const { saver, reads, wait, settle, last, request, loseAnswer, read } = scene(3);
  await loseAnswer(new ServiceError(504, "Unknown."));
  read(0).answer({ revision: 7, savedAt: 5, data: { a: 1 } });
  await settle();
  saver.change({ a: 2 });
  wait(pause);
  request(2).refuse(new ServiceError(412, "Changed."));
  await settle();
  assert.deepEqual(last(), { state: "conflict" });
  assert.equal(reads.length, 1);
});

test("a draft that cannot be looked at is looked at later", async () => {
  const { wait, settle, last, request, read, loseAnswer } = scene(3);
  await loseAnswer(new ServiceError(504, "Unknown."));
  read(0).refuse(new ServiceError(0, "Not reached."));
  await settle();
  assert.deepEqual(last(), { state: "failed", message: "Not reached.", again: true });
  wait(4_000);
  request(2).refuse(new ServiceError(412, "Changed."));
  await settle();
  read(1).answer({ revision: 7, savedAt: 5, data: { a: 1 } });
  await settle();
  assert.deepEqual(last(), { state: "saved", savedAt: 5 });
});

test("a draft that was discarded without an answer is no conflict", async () => {
  const { saver, wait, settle, last, request, read } = scene(3);
  await assert.rejects(saver.discard(() => Promise.reject(new ServiceError(0, "Not reached."))));
  saver.reopen();
  saver.change({ a: 1 });
  wait(pause);
  request(0).refuse(new ServiceError(412, "Changed."));
  await settle();
  read(0).answer(null);
  await settle();
  assert.equal(request(1).over, 0);
  request(1).answer({ revision: 9, savedAt: 6 });
  await settle();
  assert.deepEqual(last(), { state: "saved", savedAt: 6 });
});
