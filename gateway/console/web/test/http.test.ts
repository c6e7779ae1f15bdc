import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { RetryKeys, ServiceError } from "../src/api/http";
import { createChecklist, createForm } from "../src/api/portal";
import { addComment } from "../src/api/tasks";
import { sendEvent } from "../src/api/workflow";

const realFetch = globalThis.fetch;
afterEach(() => {
  globalThis.fetch = realFetch;
});

/** A service that gives each request the next answer; it returns the keys that were sent. */
function answering(...answers: (Response | Error)[]) {
  const sent: string[] = [];
  globalThis.fetch = async (request) => {
    sent.push((request as Request).headers.get("Idempotency-Key") ?? "");
    const answer = answers.shift();
    if (!(answer instanceof Response)) {
      throw answer ?? new Error("there is no more answer");
    }
    return answer;
  };
  return sent;
}

/** An answer that breaks off in the middle. */
const broken = () => new Response(new ReadableStream({ pull: (controller) => controller.error(new TypeError("network error")) }));

test("creating goes out under its key, until there is an answer", async () => {
  const refusals = [504, 502, 500, 503, 429, 401].map((status) => new Response("{}", { status }));
  const sent = answering(new TypeError("Failed to fetch"), broken(), ...refusals, new Response("i1\n"), new Response("c1"));
  while (sent.length < 8) {
    await assert.rejects(createForm("leave", "w", "own"), ServiceError);
  }
  assert.equal(await createForm("leave", "w", "own"), "i1");
  assert.equal(await createChecklist("safety", "own"), "c1");
  assert.deepEqual(new Set(sent), new Set(["own"]));
});

test("what was refused for good is asked anew, and each request has its own key", async () => {
  const of = { workflowId: "w", instanceId: "i" };
  const sent = answering(new Response("{}", { status: 409 }), ...[1, 2, 3, 4].map(() => new Response("{}", { status: 504 })));
  const keys = new RetryKeys();
  for (const name of ["approve", "approve", "reject", "cancel", "approve"]) {
    await assert.rejects(sendEvent(of, name, null, "", keys), ServiceError);
  }
  assert.equal(new Set(sent).size, 4);
  assert.equal(sent[4], sent[1], "another request in between changes nothing");
});

test("an event that is sent again after a lost answer happens once", async () => {
  const of = { workflowId: "w", instanceId: "i" };
  const sent = answering(new TypeError("Failed to fetch"), broken(), ...[1, 2].map(() => Response.json({ state: { states: [] } })), new Response("{}", { status: 412 }), broken());
  const keys = new RetryKeys();
  const send = () => sendEvent(of, "approve", { comment: "x" }, '"4"', keys);
  await assert.rejects(send(), ServiceError);
  await assert.rejects(send(), ServiceError);
  assert.deepEqual(await send(), { redirect: "", states: [] });
  assert.equal(new Set(sent).size, 1, `${sent}`);
  await send();
  await assert.rejects(send(), ServiceError);
  await assert.rejects(send(), ServiceError);
  assert.equal(new Set(sent).size, 4, "what is answered for good is over");
});

test("a comment that is sent again after a lost answer is there once", async () => {
  const of = { workflowId: "w", instanceId: "i" };
  const sent = answering(new TypeError("Failed to fetch"), ...[1, 2].map(() => Response.json({ comment: {} })));
  await assert.rejects(addComment(of, "well"), ServiceError);
  await addComment(of, "well");
  assert.equal(new Set(sent).size, 1, `${sent}`);
  await addComment(of, "well");
  assert.equal(new Set(sent).size, 2, "the same words again are another comment");
});
