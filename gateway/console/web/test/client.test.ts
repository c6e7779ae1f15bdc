// How a program uses the service from TypeScript: openapi-fetch with the types of gateway/openapi.yaml, against the real
// program, which TROUPE_PROGRAM names.
import assert from "node:assert/strict";
import { test } from "node:test";
import createClient from "openapi-fetch";
import { startService } from "../browser/service.mjs";
import type { components, paths } from "../src/api/openapi";

/** The entries of a watch, as they are committed. It ends with the stream. */
async function* entries(stream: ReadableStream<Uint8Array>): AsyncGenerator<components["schemas"]["Watched"]> {
  const [reader, decoder] = [stream.getReader(), new TextDecoder()];
  let text = "";
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    const blocks = (text + decoder.decode(piece.value, { stream: true })).split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const data = /^data: (.*)$/m.exec(block)?.[1]; // the service writes it on one line
      if (data !== undefined && block.includes("event: entry")) {
        yield JSON.parse(data) as components["schemas"]["Watched"];
      }
    }
  }
}

test("a program creates an instance, sends events, lists and watches, and is refused in words", { skip: process.env["TROUPE_PROGRAM"] === undefined && "TROUPE_PROGRAM names no program" }, async () => {
  const service = await startService();
  try {
    const clientOf = (user: string) => createClient<paths>({ baseUrl: service.root, headers: { Authorization: `Bearer ${service.token(user)}` } });
    const [john, mary] = [clientOf("john.doe"), clientOf("mary.major")];
    const workflowId = "leave-request";

    const stop = new AbortController();
    const watch = await john.GET("/workflow/api/v1/watch/{workflowId}", { params: { path: { workflowId } }, parseAs: "stream", signal: stop.signal });
    assert.ok(watch.data);
    const watched = entries(watch.data);

    // The same key creates one instance, however often it is sent, and no other.
    const create = (from: string) => john.POST("/workflow/api/v1/create", { body: { workflowId, data: { svcPublic: { from } } }, params: { header: { "Idempotency-Key": "trip" } } });
    const { data: made } = await create("2026-12-21");
    assert.ok(made);
    const { instanceId } = made;
    assert.equal((await create("2026-12-21")).data?.instanceId, instanceId);
    const reused = await create("2027-01-04");
    assert.deepEqual([reused.response.status, reused.error?.error], [422, "KeyReused"]);

    const send = (client: typeof john, name: string, data: Record<string, unknown> = {}) => client.POST("/workflow/api/v1/event", { body: { workflowId, instanceId, event: { name, data } } });
    const early = await send(mary, "approve");
    assert.deepEqual([early.data, early.response.status, early.error?.error], [undefined, 409, "EventNotAllowed"]);
    const long = await send(john, "submit", { days: 90 });
    assert.deepEqual([long.response.status, long.error?.error], [400, "InvalidContent"]);
    const { data: sent } = await send(john, "submit", { days: 5 });
    assert.equal(sent?.state.svcPublic?.["days"], 5);

    const { data: list } = await mary.GET("/workflow/api/v1/instances/{workflowId}", { params: { path: { workflowId }, query: { filter: '{"states.nodeId":"review"}', limit: 10, count: true } } });
    assert.deepEqual([list?.count, list?.instances.map(({ _id }) => _id)], [1, [instanceId]]);
    const { data: tasks } = await mary.GET("/workflow/api/v1/tasks");
    assert.deepEqual(tasks?.tasks.map((task) => task.instanceId), [instanceId]);
    assert.equal((await send(mary, "approve", { comment: "enjoy" })).response.status, 200);

    const seen: string[] = [];
    for await (const { sequence, entry } of watched) {
      seen.push(`${sequence} ${entry.transitionEvent} by ${entry.user}`);
      if (entry.transitionEvent === "approve") {
        break;
      }
    }
    stop.abort();
    assert.deepEqual(seen, ["1  by john.doe", "2 submit by john.doe", "3 approve by mary.major"]);
  } finally {
    await service.stop();
  }
});
