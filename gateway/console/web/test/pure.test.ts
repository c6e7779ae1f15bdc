import assert from "node:assert/strict";
import { test } from "node:test";
import type { Form, FormView, HistoryEntry, WorkflowEvent } from "../src/api/types";
import { searchForms } from "../src/worklist/match";
import { instancePath, parseRoute, runtimePath, safeRedirect } from "../src/route";
import { initialData } from "../src/runtime/initialData";
import { movesOf, withEntry } from "../src/runtime/historyEntries";
import { offered } from "../src/runtime/offered";
import { layoutOf, renderable } from "../src/schemaform/layout";
import { titleAt } from "../src/schemaform/titles";
import { formatAgo, readable } from "../src/words";

test("routes are those of the base path", () => {
  const page = (path: string, base: string) => parseRoute(path, base).page;
  assert.equal(page("/", "/"), "portal");
  assert.equal(page("/platform/", "/platform/"), "portal");
  assert.equal(page("/platform", "/platform/"), "portal");
  assert.equal(page("/other/", "/platform/"), "unknown");
  assert.equal(page("/form-runtime/f/w/i", "/"), "unknown");
  assert.equal(page("/form-runtime/f//i/index.html", "/"), "unknown");
  assert.equal(page("/form-runtime/f/w/i/index.html/x", "/"), "unknown");
  assert.equal(page("/form-runtime/%zz/w/i/index.html", "/"), "unknown");
  assert.deepEqual(parseRoute("/platform/form-runtime/f/-/i/index.html", "/platform/"), { page: "runtime", formId: "f", instance: { workflowId: "-", instanceId: "i" } });
  assert.deepEqual(parseRoute("/platform/instances/w/i%2F1", "/platform/"), { page: "instance", instance: { workflowId: "w", instanceId: "i/1" } });
  assert.equal(page("/instances/w", "/"), "unknown");
  assert.equal(page("/instances/w/i/x", "/"), "unknown");
  assert.equal(instancePath("w", "i/1"), "instances/w/i%2F1");
  assert.equal(runtimePath("f", "-", "i"), "form-runtime/f/-/i/index.html");
});

test("a redirect leads to this server or nowhere", () => {
  const base = "https://ours.example/platform/";
  assert.equal(safeRedirect("/leave/1", base), "/leave/1");
  assert.equal(safeRedirect("leave/1?x=y#z", base), "/platform/leave/1?x=y#z");
  for (const target of ["", "https://ours.example/x", "https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)", "JaVaScript:alert(1)", "data:text/html,x", "/\t/evil.example", " /x", "/x y", "/ä", "/".repeat(3000)]) {
    assert.equal(safeRedirect(target, base), "", target);
  }
});

test("a redirect does not climb to another server", () => {
  const dots = ["/.", "/..", "/a/..", "/a/../..", ".", "..", "../..", "a/../..", "/%2e", "/%2E%2e", "a/%2e./.%2E", "/platform/../."];
  const names = ["//evil.example", "//evil.example/x?y#z", "///evil.example", "/\\evil.example", "\\/evil.example", "/\t/evil.example", "/\n/evil.example", "\r//evil.example"];
  const leads: string[] = [];
  for (const base of ["https://ours.example/", "https://ours.example/platform/"]) {
    for (const target of dots.flatMap((dot) => names.map((name) => dot + name))) {
      const link = safeRedirect(target, base);
      if (new URL(link, base).origin !== "https://ours.example" || /^\/[/\\]/.test(link)) {
        leads.push(`${target} below ${base}`);
      }
    }
    assert.equal(safeRedirect("/.//evil.example/x", base), "");
    assert.equal(safeRedirect("/..//evil.example/x", base), "");
    assert.equal(safeRedirect("/a/../b", base), "/b", "dots alone lead nowhere else");
    assert.equal(safeRedirect("/a//b", base), "/a//b", "nor does a slash that is doubled further on");
  }
  assert.deepEqual(leads, []);
  assert.equal(safeRedirect(".//evil.example", "https://ours.example/"), "");
  assert.equal(safeRedirect("a/../..//evil.example", "https://ours.example/platform/"), "");
});

const form = (over: Partial<Form>): Form => ({ id: "1", formType: "Form", formId: "f", submissionId: "", name: "Leave request", fullPath: "", by: "", when: 0, status: "", role: "employee", ...over });

test("search wants every word, whatever its case and accents", () => {
  const forms = [form({}), form({ id: "2", name: "Déménagement", status: "review" })];
  const ids = (query: string) => searchForms(forms, query, (id) => (id === "employee" ? "Staff" : id)).map((each) => each.id);
  assert.deepEqual(ids(""), ["1", "2"]);
  assert.deepEqual(ids("demena REV"), ["2"]);
  assert.deepEqual(ids("staff"), ["1", "2"]);
  assert.deepEqual(ids("leave review"), []);
});

const entry = (event: string, startState: string[], endState: string[]): HistoryEntry => ({ user: "u", transitionEvent: event, startState, endState, ts: "" });

test("a stream's entry is added once and in its place", () => {
  const history = { entries: [entry("", ["Start"], ["a"])], cut: false };
  const watched = (sequence: number) => ({ workflowId: "w", instanceId: "i", sequence, entry: entry("go", ["a"], ["b"]), states: [] });
  assert.equal(withEntry(history, watched(1)), "known");
  assert.equal(withEntry(history, watched(3)), "gap");
  assert.equal(withEntry({ ...history, cut: true }, watched(2)), "gap");
  const next = withEntry(history, watched(2));
  assert.equal(typeof next === "object" && next.entries.length, 2);
});

test("only the machines that moved are told", () => {
  assert.deepEqual(movesOf(entry("go", ["a", "x"], ["b", "x"])), [{ machine: 0, from: "a", to: "b" }]);
  assert.deepEqual(movesOf(entry("note", ["a"], ["a"])), []);
});

const view = (over: Partial<FormView>): FormView => ({
  form: form({}),
  category: "current",
  template: { formId: "f", name: "F", description: "", schema: { type: "object", properties: { days: { type: "integer", minimum: 1 }, text: { type: "string" } }, required: ["days"] }, submit: "submit" },
  data: { status: "draft", days: 0, text: "hello" },
  draft: null,
  states: [],
  submittedAt: 0,
  editable: true,
  ...over,
});

test("a form begins with its draft, or with what the instance holds of its fields", () => {
  assert.deepEqual(initialData(view({})), { text: "hello" });
  assert.deepEqual(initialData(view({ submittedAt: 1 })), { days: 0, text: "hello" });
  assert.deepEqual(initialData(view({ draft: { revision: 1, savedAt: 1, data: { days: 2 } } })), { days: 2 });
  assert.deepEqual(initialData(view({ template: { formId: "c", name: "C", description: "", items: [{ id: "a", label: "A", help: "", required: false }] }, data: { a: true, b: true } })), { a: true });
  assert.deepEqual(initialData(view({ template: null })), {});
});

test("the form's own event and what a guard refuses are not offered", () => {
  const event = (name: string, guard: "true" | "false" | "unknown"): WorkflowEvent => ({ name, label: name, done: null, style: "default", guard, transitions: [], schema: null });
  const events = [event("submit", "true"), event("withdraw", "unknown"), event("escalate", "false")];
  const names = (over: Partial<FormView>) => offered(events, view(over)).map((each) => each.name);
  assert.deepEqual(names({}), ["withdraw"]);
  assert.deepEqual(names({ editable: false }), ["submit", "withdraw"]);
});

test("long texts get lines, and consents are not given by themselves", () => {
  const schema = { type: "object", properties: { short: { type: "string", maxLength: 20 }, long: { type: "string", maxLength: 500 }, own: { type: "string", maxLength: 500 }, in: { type: "object", properties: { long: { type: "string", maxLength: 500 } } } } };
  assert.deepEqual(layoutOf(schema, { own: { "ui:widget": "text" } }), { long: { "ui:widget": "textarea" }, own: { "ui:widget": "text" }, in: { long: { "ui:widget": "textarea" } } });
  assert.deepEqual(renderable({ properties: { ok: { type: "boolean", const: true }, kind: { const: "x" } } }), { properties: { ok: { type: "boolean", enum: [true] }, kind: { const: "x" } } });
});

test("a place of the data is named as the fields on the way", () => {
  const schema = { type: "object", properties: { items: { title: "Things", type: "array", items: { $ref: "#/$defs/item" } } }, $defs: { item: { type: "object", properties: { unitPrice: {} } } } };
  assert.equal(titleAt(schema, ["items", "1", "unitPrice"]), "Things 2, Unit price");
  assert.equal(titleAt({ $ref: "#" }, ["x"]), "X");
});

test("names become readable", () => {
  for (const [name, want] of [["sendBack", "Send back"], ["send-back", "Send back"], ["in_review", "In review"], ["HTTPError", "HTTP error"], ["step2Done", "Step2 done"], ["-", "-"]] as const) {
    assert.equal(readable(name), want);
  }
});

test("times of the last day are told as people say them", () => {
  const now = new Date("2026-11-21T12:00:00Z");
  const before = (milliseconds: number) => formatAgo(new Date(now.getTime() - milliseconds), now);
  assert.equal(before(30_000), "just now");
  assert.match(before(5 * 60_000), /5/);
  assert.match(before(3 * 3_600_000), /3/);
  assert.match(before(40 * 86_400_000), /12|Oct/);
});
