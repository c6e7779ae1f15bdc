import assert from "node:assert/strict";
import { test } from "node:test";
import { inspectPath, pathOf } from "../src/operations/address";
import type { Delivery, Health, Incident, RunningTimer, Schedule } from "../src/operations/api";
import type { Task } from "../src/api/tasks";
import { allIds, failedSchedules, grouped, lateTimers, overdueTasks, stuckDeliveries, stuckIncidents, waitingFor } from "../src/operations/attention";
import { cronWords } from "../src/operations/cron";
import { filterOf, operators, type Row, rowsOf, typedOf, valueAt, valueOf } from "../src/operations/filter";
import { eventName, incidentName, timesText, whatEnds } from "../src/operations/names";
import { lineOf, linesOf, readingsMax, seriesOf, sizeOf, toneOfHealth, withReading } from "../src/operations/load";
import { isLost, planOf, stepsOf } from "../src/operations/plan";
import { parseCount } from "../src/operations/standing";
import { i18n } from "../src/text";
import { de } from "../src/operations/text/de";
import { en } from "../src/operations/text/en";
import { parseViews, queryOfView, withView } from "../src/operations/views";
import { parseRoute } from "../src/route";
import { durationText } from "../src/words";

function texts(part: object, way = ""): [string, string][] {
  return Object.entries(part).flatMap(([key, value]) => (typeof value === "string" ? [[way + key, value] as [string, string]] : texts(value as object, `${way}${key}.`)));
}

test("operations speak German as well: the same texts, with the same places in them", () => {
  const places = (text: string) => [...text.matchAll(/\{\{\w+\}\}|<\/?\d>/g)].map(([place]) => place).toSorted();
  const german = new Map(texts(de));
  assert.deepEqual([...german.keys()], texts(en).map(([key]) => key));
  for (const [key, text] of texts(en)) {
    assert.deepEqual(places(german.get(key) ?? ""), places(text), key);
    assert.notEqual(german.get(key), "", key);
  }
});

test("operations have an address of their own", () => {
  assert.deepEqual(parseRoute("/platform/operations", "/platform/"), { page: "operations" });
  assert.deepEqual(parseRoute("/platform/operations/x", "/platform/"), { page: "unknown" });
  assert.equal(pathOf("outbox"), "operations?section=outbox");
  assert.equal(inspectPath("a&b", "i 1"), "operations?section=instances&workflow=a%26b&instance=i+1");
});

test("what is typed is a number, true, false or null where it looks like one, else text", () => {
  for (const [typed, want] of [["12", 12], ["-1.5e3", -1500], ["012", "012"], ["true", true], ["null", null], ["nullx", "nullx"], ['"12"', "12"], ['"', '"'], [" a b ", "a b"], ["{}", "{}"], ["[1]", "[1]"]] as const) {
    assert.deepEqual(valueOf(typed), want, typed);
  }
  assert.equal(typedOf("12"), '"12"');
  assert.equal(typedOf(""), '""');
  assert.equal(typedOf({ a: 1 }), undefined);
});

const row = (path: string, operator: Row["operator"], value = ""): Row => ({ path, operator, value });

test("rows make a filter", () => {
  assert.equal(filterOf([]), "");
  assert.equal(filterOf([row("", "is", "x"), row("a", "is", "")]), "", "rows that are not whole do not count");
  assert.equal(filterOf([row("states.nodeId", "is", "review")]), '{"states.nodeId":"review"}');
  assert.equal(filterOf([row("svcPublic.a", "atLeast", "1"), row("svcPublic.b", "contains", "1+1")]), '{"svcPublic.a":{"$gte":1},"svcPublic.b":{"$regex":"1\\\\+1","$options":"i"}}');
  assert.equal(filterOf([row("svcPublic.a", "above", "1"), row("svcPublic.a", "below", "9")]), '{"$and":[{"svcPublic.a":{"$gt":1}},{"svcPublic.a":{"$lt":9}}]}', "a path that stands twice needs $and");
  assert.equal(filterOf([row("svcPublic.a", "oneOf", '1, "b, c", d')]), '{"svcPublic.a":{"$in":[1,"b, c","d"]}}');
  assert.equal(filterOf([row("svcPublic.a", "notThere")]), '{"svcPublic.a":{"$exists":false}}');
});

test("a filter that rows can say becomes the same rows, and any other one none", () => {
  const values = ["12", '"12"', "true", "null", "a b", "x.y*z", "$1", '"a, b"', "^a"];
  const all = operators.flatMap((operator) => (operator.endsWith("here") ? [row("svcPublic.a", operator)] : values.map((value) => row("svcPublic.a", operator, operator === "begins" || operator === "contains" ? value.replaceAll('"', "") : value))));
  for (const one of all) {
    for (const rows of [[one], [one, row("_id", "is", "x"), one]]) {
      const back = rowsOf(filterOf(rows)) ?? [];
      assert.equal(filterOf(back), filterOf(rows));
      assert.deepEqual(back.map(({ path, operator }) => [path, operator]), rows.map(({ path, operator }) => [path, operator]));
    }
  }
  assert.deepEqual(rowsOf('{"svcPublic.a":{"$in":[1,"b, c","7"]}}'), [row("svcPublic.a", "oneOf", '1, "b, c", "7"')]);
  assert.deepEqual(rowsOf(" "), []);
  for (const filter of ["{", "[]", "1", '{"$or":[{"a":1}]}', '{"a":{"$not":{"$gt":1}}}', '{"a":{"$gt":1,"$lt":2}}', '{"a":[1]}', '{"a":{"b":1}}', '{"a":{"$regex":"a.c","$options":"i"}}', '{"a":{"$in":[]}}', '{"a":{"$in":[[1]]}}', '{"$and":[{"$and":[{"a":1}]}]}', '{"a":{"$exists":1}}', '{"$and":1}']) {
    assert.equal(rowsOf(filter), null, filter);
  }
});

test("values are looked up in own members only", () => {
  assert.equal(valueAt({ svcPublic: { a: { b: 7 } } }, "svcPublic.a.b"), 7);
  assert.equal(valueAt({ svcPublic: {} }, "svcPublic.constructor.name"), undefined);
  assert.equal(valueAt({ svcPublic: "text" }, "svcPublic.length"), undefined);
});

test("a view is what is shown, and not where in the list", () => {
  const asked = new URLSearchParams("section=instances&filter=%7B%7D&sort=-a&cursor=x&col=svcPublic.b&col=svcPublic.a&instance=y");
  assert.equal(queryOfView("w", asked), "workflow=w&filter=%7B%7D&sort=-a&col=svcPublic.b&col=svcPublic.a");
  const views = withView(withView([], " b ", "1"), "a", "2");
  assert.deepEqual(views, [{ name: "a", query: "2" }, { name: "b", query: "1" }]);
  assert.deepEqual(withView(views, "b", "3"), [{ name: "a", query: "2" }, { name: "b", query: "3" }], "a name is there once");
  assert.deepEqual(withView(views, " ", "3"), views);
  assert.deepEqual(parseViews(JSON.stringify(views)), views);
  for (const text of [null, "", "{", "{}", "7", '[1, null, {"name": ""}, {"name": "x"}, {"name": 1, "query": ""}]']) {
    assert.deepEqual(parseViews(text), [], String(text));
  }
});

const reading = (second: number, over: Partial<Health["requests"]> = {}, started = "2026-11-26T00:00:00.000Z"): Health => ({
  ts: new Date(Date.UTC(2026, 10, 26, 0, 0, second)).toISOString(),
  started,
  ready: true,
  build: { version: "", commit: "", go: "" },
  parts: [],
  cluster: null,
  requests: { answered: 10 * second, failed: 0, shed: 0, inFlight: second, places: 1, connections: 1, watchers: 0, ...over },
});

test("rates are differences of one node since one start", () => {
  const readings = [reading(0), reading(2), reading(4, { answered: 100 })].reduce(withReading, [] as Health[]);
  assert.deepEqual(seriesOf("requests", readings), [10, 40]);
  assert.deepEqual(seriesOf("inFlight", readings), [0, 2, 4]);
  assert.deepEqual(seriesOf("events", readings), [0, 0], "what nobody counts");
  assert.equal(withReading(readings, reading(6, {}, "2026-11-26T00:00:05.000Z")).length, 1, "a new start");
  assert.equal(withReading(readings, { ...reading(6), cluster: { self: "B", nodes: [], short: [] } }).length, 1, "another node");
  assert.equal(withReading(readings, reading(4)).length, 3, "the same reading");
  const many = Array.from({ length: 200 }, (_, i) => reading(i)).reduce(withReading, [] as Health[]);
  assert.equal(many.length, readingsMax);
});

test("lines end at the right and touch the top with the most", () => {
  assert.deepEqual(lineOf([], 190, 40), { line: "", area: "", most: 0 });
  const { line, area, most } = lineOf([1, 4, 2], 190, 40);
  assert.equal(line, "M170 30L180 0L190 20");
  assert.equal(area, "M170 30L180 0L190 20L190 40L170 40Z");
  assert.equal(most, 4);
  assert.match(lineOf([0, 0], 190, 40).line, /^M\d+ 40L190 40$/);
  assert.ok(!/NaN|Infinity/.test(lineOf([0], 190, 40).line));
});

test("sizes are told in the unit that fits", () => {
  assert.deepEqual(sizeOf(999), { value: 999, unit: 0 });
  assert.deepEqual(sizeOf(1_500_000), { value: 1.5, unit: 2 });
  assert.equal(sizeOf(1e30).unit, 4);
});

test("the numbers of a picture are read, estimates too", () => {
  assert.deepEqual(parseCount("1234", "exactly"), { count: 1234, how: "" });
  assert.deepEqual(parseCount("78000", "about"), { count: 78_000, how: "about" });
  assert.deepEqual(parseCount("78000", "over"), { count: 78_000, how: "over" });
  assert.equal(parseCount("1,234", "exactly"), null);
  assert.equal(parseCount(null, null), null);
});

test("a plan names what has another name, and nothing goes on by guess", () => {
  const status = (nodeId: string, stateMachineId = "main") => ({ stateMachineId, nodeId, label: nodeId.toUpperCase(), tone: "neutral" as const });
  const nodes = [status("draft"), status("review"), status("open", "delivery")];
  const same = stepsOf([status("draft"), status("open", "delivery")], nodes, {});
  assert.deepEqual(planOf(1, 2, same, "keep"), { from: 1, to: 2, timers: "keep" });
  const gone = stepsOf([status("checking")], nodes, {});
  assert.equal(gone[0]?.chosen, "");
  assert.deepEqual(gone[0]?.to.map(({ nodeId }) => nodeId), ["draft", "review"], "a state of the same machine");
  assert.equal(planOf(1, 2, gone, "keep"), null);
  assert.deepEqual([...same, ...gone].map(isLost), [false, false, true]);
  assert.deepEqual(planOf(1, 2, stepsOf([status("checking")], nodes, { "main checking": "review" }), "drop"), { from: 1, to: 2, timers: "drop", nodes: { main: { checking: "review" } } });
  assert.equal(planOf(2, 2, same, "keep"), null);
});

test("a node with under-replicated shards takes requests, with a warning", () => {
  const cluster = { self: "A", nodes: [], short: [] as number[] };
  assert.equal(toneOfHealth({ ...reading(0), cluster: null }), "good", "no cluster");
  assert.equal(toneOfHealth({ ...reading(0), cluster }), "good");
  assert.equal(toneOfHealth({ ...reading(0), cluster: { ...cluster, short: [4] } }), "waiting");
  assert.equal(toneOfHealth({ ...reading(0), ready: false, cluster: { ...cluster, short: [4] } }), "bad");
});

test("incidents and what a stop ends have words in both languages", () => {
  const child = (workflowId: string) => ({ workflowId, instanceId: workflowId, status: "running" as const });
  for (const [language, want] of [
    ["en", { tree: "Too many instances in the tree", loop: "Endless loop", times: "2 times, last for ann", unnamed: "1 time", ends: "This cancels “A”, 3 running child instances (2 × Check it, 1 × Job) and everything below them." }],
    ["de", { tree: "Zu viele Instanzen im Baum", loop: "Endlosschleife", times: "2-mal, zuletzt für ann", unnamed: "1-mal", ends: "„A“, 3 laufende Kind-Instanzen (2 × Check it, 1 × Job) und alles darunter werden abgebrochen." }],
  ] as const) {
    i18n.addResourceBundle(language, "operations", { en, de }[language]);
    const t = i18n.getFixedT(language, "operations");
    assert.equal(incidentName({ event: "", kind: "tree" }, t), want.tree);
    assert.equal(incidentName({ event: "go", kind: "loop" }, t), want.loop);
    assert.equal(incidentName({ event: "go", kind: "expression" }, t), eventName("go", t));
    assert.equal(incidentName({ event: "go" }, t), "Go");
    assert.equal(timesText({ count: 2, user: "ann" }, t), want.times);
    assert.equal(timesText({ count: 1 }, t), want.unnamed);
    assert.equal(whatEnds("A", [child("check-it"), child("job"), child("check-it")], t), want.ends);
    assert.notEqual(whatEnds("A", [], t), "");
  }
});

test("a schedule is said in words, and as it is where it is none", () => {
  assert.equal(cronWords("0 6 * * 1-5", "en"), "At 06:00, Monday through Friday");
  assert.equal(cronWords("0 6 * * 1-5", "de"), "Um 06:00, Montag bis Freitag");
  assert.equal(cronWords("never", "de"), "never");
});

test("what is stuck for one reason is one line, with what waits longest first", () => {
  const now = "2026-12-01T12:00:00.000Z";
  const incident = (id: string, ts: string, more: Partial<Incident> = {}) => ({ id, ts, workflowId: "order", instanceId: `i${id}`, event: "pay", error: "no", ...more }) as Incident;
  const rows = grouped([
    ...stuckIncidents([incident("1", "2026-12-01T11:00:00.000Z"), incident("2", "2026-12-01T10:00:00.000Z"), incident("3", "2026-12-01T09:00:00.000Z", { error: "other" })], ({ event }) => event),
    ...stuckIncidents([incident("4", "2026-12-01T11:59:00.000Z", { kind: "expression", first: "2026-11-30T00:00:00.000Z", count: 7, file: "order.yaml", line: 12 })], ({ event }) => event),
    ...stuckDeliveries([{ id: "5", workflowId: "order", instanceId: "i5", name: "ship", lastStatus: 500, lastError: "", created: "2026-12-01T08:00:00.000Z", url: "https://example.com" } as Delivery], ({ name }) => name),
    ...overdueTasks([{ workflowId: "leave", instanceId: "i6", title: "Review", due: "2026-12-01T11:59:59.000Z" }, { workflowId: "leave", instanceId: "i7", title: "Review", due: "2026-12-02T00:00:00.000Z" }, { workflowId: "leave", title: "Review", due: null }] as Task[], now, () => "Manager"),
    ...lateTimers([{ workflowId: "a", instanceId: "i8", event: "e", due: "2026-12-01T11:58:00.000Z" }, { workflowId: "a", instanceId: "i9", event: "e", due: "2026-12-01T11:59:30.000Z" }] as RunningTimer[], now, ({ event }) => event),
    ...failedSchedules([{ workflowId: "stock", name: "monthly", lastError: "refused", last: null }, { workflowId: "stock", name: "daily", lastError: "" }] as Schedule[], now),
  ]);
  assert.deepEqual(
    rows.map(({ cause, name, error, whom, count, since, ids, instanceId }) => [cause, name, error, whom, count, since.slice(5, 16), ids.join(" "), instanceId]),
    [
      ["expression", "pay", "no", "order.yaml:12", 7, "11-30T00:00", "", "i4"],
      ["delivery", "ship", "500", "https://example.com", 1, "12-01T08:00", "5", "i5"],
      ["incident", "pay", "other", "", 1, "12-01T09:00", "3", "i3"],
      ["incident", "pay", "no", "", 2, "12-01T10:00", "1 2", ""],
      ["timer", "e", "", "", 1, "12-01T11:58", "", "i8"],
      ["task", "Review", "", "Manager", 1, "12-01T11:59", "", "i6"],
      ["schedule", "monthly", "refused", "", 1, "12-01T12:00", "", ""],
    ],
  );
});

test("all of a group is found, on every page, each once", async () => {
  const one = (id: string, key = "a") => ({ key, id, cause: "delivery" as const, workflowId: "order", name: "", error: "", whom: "", since: "", instanceId: "" });
  const pages = new Map([["", { found: [one("1"), one("2", "b")], next: "p" }], ["p", { found: [], next: "q" }], ["q", { found: [one("3"), one("1")], next: null }]]);
  assert.deepEqual(await allIds("a", async (cursor) => pages.get(cursor) ?? assert.fail(cursor)), ["1", "3"]);
});

test("lines of the last hour have one scale, gaps, and the newest minute at the right", () => {
  assert.deepEqual(linesOf([[]], 59, 10), { paths: [""], most: 0 });
  assert.deepEqual(linesOf([[0, 4, null, 2], [null, null, null, 1]], 59, 8), { paths: ["M56 8h0L57 0M59 4h0", "M59 6h0"], most: 4 });
});

test("tasks are counted by whom they wait for, who has waited longest first", () => {
  const task = (created: string, more: Partial<Task> = {}) => ({ created, due: null, assignee: null, assigneeName: null, candidates: { roles: ["manager"], users: [], privileges: [] }, ...more }) as Task;
  const mary = { assignee: "mary.major", assigneeName: "Mary Major" };
  assert.deepEqual(waitingFor([task("2026-11-03", mary), task("2026-11-02", { due: "2026-11-04" }), task("2026-11-01", { ...mary, due: "2026-11-09" })], "2026-11-05", i18n.getFixedT("en", "operations")), [
    { who: "Mary Major", user: "mary.major", count: 2, overdue: 0, oldest: "2026-11-01" },
    { who: "Manager", user: "", count: 1, overdue: 1, oldest: "2026-11-02" },
  ]);
});

test("a duration is said in its largest unit", () => {
  assert.deepEqual([0, 59, 90, 3600, 2 * 86_400].map(durationText), ["0 seconds", "59 seconds", "1.5 minutes", "1 hour", "2 days"]);
});
