import assert from "node:assert/strict";
import { test } from "node:test";
import type { Draft, Form, FormView, Misfit, Presentation, WorkflowEvent } from "../src/api/types";
import { loadForms } from "../src/api/portal";
import { formsAsked, mayCreate, tabsOf } from "../src/worklist/asked";
import { formWorkflow, isSubmitted, sharedColumns, statusOf, titleOf, valuesOf } from "../src/worklist/statusWords";
import { beginPath, instancePath, parseRoute, runtimePath, safeRedirect } from "../src/route";
import { initialData } from "../src/runtime/initialData";
import { timerWords, wordingOf, wordsOf } from "../src/instance/definitionWords";
import { joined, otherTemplate, parted } from "../src/runtime/misfits";
import { FormPlace } from "../src/runtime/formPlace";
import { offered } from "../src/runtime/offered";
import { layoutOf, renderable } from "../src/schemaform/layout";
import { titlesAt } from "../src/schemaform/titles";
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
  assert.deepEqual(parseRoute(`/${beginPath("f", "w", false)}`, "/"), { page: "begin", formId: "f", workflowId: "w", checklist: false });
  assert.deepEqual(parseRoute(`/${beginPath("f", "-", true)}`, "/"), { page: "begin", formId: "f", workflowId: "-", checklist: true });
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

const presentation: Presentation = {
  workflowId: "leave", name: "Leave", version: 1, titled: true, columns: [], stateMachines: [{ stateMachineId: "approval", label: "Approval" }],
  nodes: [
    { stateMachineId: "main", nodeId: "review", label: "Waiting for a manager", tone: "waiting" },
    { stateMachineId: "side", nodeId: "review", label: "Side review", tone: "neutral" },
  ],
  compounds: [{ stateMachineId: "main", nodeId: "deciding", label: "To be decided", tone: "waiting" }],
  events: [{ name: "send", label: "Send it", done: "sent it", style: "default" }],
  sorts: [],
};

test("a status is said in the words of the definition, where they are known", () => {
  const bound = form({ formType: "WorkflowForm", fullPath: "form-runtime/f/le%2Dave/1/index.html", status: "review, other_place" });
  assert.equal(formWorkflow(bound), "le-ave");
  assert.equal(formWorkflow(form({ fullPath: "form-runtime/f/-/1/index.html" })), "");
  assert.deepEqual(statusOf(bound, presentation).map((status) => [status.label, status.tone]), [["Waiting for a manager", "waiting"], ["Other place", "neutral"]]);
  assert.deepEqual(statusOf(bound, undefined).map((status) => status.label), ["Review", "Other place"]);
  assert.deepEqual(statusOf({ ...bound, states: [{ stateMachineId: "main", nodeId: "x", label: "X!", tone: "good" }] }, presentation).map((status) => status.label), ["X!"]);
  assert.deepEqual(statusOf(form({ status: "submitted" }), undefined), []);
  const words = wordsOf(presentation);
  assert.deepEqual([words.node("review"), words.node("deciding"), words.node("sentBack"), words.event("send"), words.done("send"), words.event("callOff"), words.done("callOff")], ["Waiting for a manager", "To be decided", "Sent back", "Send it", "sent it", "Call off", ""]);
});

test("an instance that is no form is shown as what it is, and cannot be deleted", () => {
  const shown: Partial<Form> = { title: "5 days", columns: [{ path: "svcPublic.days", label: "Days", value: 5 }] };
  const instance = form({ ...shown, formType: "Instance", formId: "", role: "", fullPath: "instances/of%20path/1", workflowId: "leave", status: "review" });
  assert.equal(formWorkflow(instance), "leave");
  assert.deepEqual(statusOf(instance, presentation).map((status) => status.label), ["Waiting for a manager"]);
  assert.deepEqual([isSubmitted(instance), titleOf(instance), valuesOf(instance)], [true, "5 days", shown.columns]);
  assert.deepEqual(sharedColumns([instance, form({ ...shown, formType: "WorkflowForm", workflowId: "leave" })]).map(({ label }) => label), ["Days"]);
  const draft = form({ ...shown, formType: "WorkflowForm", workflowId: "leave" });
  assert.deepEqual([isSubmitted(draft), titleOf(draft), valuesOf(draft)], [false, "Leave request", []]);
  assert.equal(formWorkflow(form({ workflowId: "-" })), "");
  assert.deepEqual(statusOf(form({ workflowId: "-", status: "submitted" }), undefined), []);
});

test("what was created through the interface is asked for with forms, and checklists are as ever", async (t) => {
  const address = async (asked: string, kind: "forms" | "checklists") => {
    const fetched = t.mock.method(globalThis, "fetch", async () => Response.json({}));
    await loadForms(formsAsked(new URLSearchParams(asked), kind));
    const { pathname, searchParams } = new URL(fetched.mock.calls.map(({ arguments: [request] }) => (request as Request).url).join(" "));
    fetched.mock.restore();
    return [pathname, searchParams.get("kind"), searchParams.get("category"), searchParams.get("workflowId"), searchParams.get("q"), searchParams.get("count")];
  };
  assert.deepEqual(await address("show=archived&workflow=leave&q=5+days", "forms"), ["/workflow/api/v1/requests", null, "archived", "leave", "5 days", "true"]);
  assert.deepEqual(await address("", "checklists"), ["/form-runtime/api/v1/forms", "checklist", "current", null, null, "true"]);
});

test("whoever may not use the portal still sees what he or she has created", () => {
  const may = (...privileges: string[]) => ({ id: "jane", name: "Jane", privileges });
  const always = ["waiting", "requests", "decided"];
  assert.deepEqual(tabsOf(may()), always);
  assert.deepEqual(tabsOf(may("mod-form-portal", "mod-form")), always);
  assert.deepEqual(tabsOf(may("mod-form-portal")), [...always, "checklists"]);
  assert.deepEqual(tabsOf(may("mod-form-portal", "mod-checklist")), [...always, "checklists"]);
  assert.deepEqual(tabsOf(may("mod-checklist")), always);
  assert.deepEqual([mayCreate(may("mod-form"), "forms"), mayCreate(may("mod-form-portal", "mod-form"), "forms")], [false, true]);
});

test("a list has the columns of a workflow when all its forms are of that one", () => {
  const of = (workflow: string) => form({ formType: "WorkflowForm", fullPath: `form-runtime/f/${workflow}/1/index.html`, columns: [1, 2, 3, 4].map((n) => ({ path: `p${n}`, label: `P${n}`, value: n })) });
  assert.deepEqual(sharedColumns([of("a"), of("a")]).map(({ label }) => label), ["P1", "P2", "P3"]);
  assert.deepEqual(sharedColumns([of("a"), of("b")]), []);
  assert.deepEqual(sharedColumns([]), []);
  assert.deepEqual(sharedColumns([form({})]), []);
});

test("a form is made once, also when it is asked for at once and after a fault", async () => {
  let asked = 0;
  const place = new FormPlace(null, async () => {
    asked++;
    if (asked === 1) {
      throw new Error("lost");
    }
    return { workflowId: "w", instanceId: "1" };
  });
  let told = 0;
  place.subscribe(() => told++);
  const both = await Promise.allSettled([place.made(), place.made()]);
  assert.deepEqual([both.map(({ status }) => status), asked, place.instance], [["rejected", "rejected"], 1, null]);
  assert.deepEqual(await Promise.all([place.made(), place.made()]), [place.instance, place.instance]);
  await place.made();
  assert.deepEqual([asked, told], [2, 1]);
});

const changed = (data: Draft["data"], misfits: [string, Misfit["reason"]][]): Draft => ({ revision: 1, savedAt: 1, template: "a".repeat(32), data, templateChanged: true, misfits: misfits.map(([path, reason]) => ({ path, reason })) });

test("a draft keeps what fits a changed template, and nothing of the rest is lost", () => {
  const data = { days: "five", old: "Words", inside: { gone: 1, here: 2 }, items: [{ name: "a", size: "L" }, "x", { name: "b" }], "a/b": true };
  const draft = changed(data, [["/days", "type"], ["/old", "unknown"], ["/inside/gone", "unknown"], ["/items/0/size", "choice"], ["/items/1", "type"], ["/a~1b", "unknown"], ["/never", "unknown"]]);
  const { fits, words } = parted(draft);
  assert.deepEqual(fits, { inside: { here: 2 }, items: [{ name: "a" }, { name: "b" }] });
  assert.deepEqual(new Map(words.map((word) => [word.path.join("/"), word.value])), new Map<string, unknown>([["a/b", true], ["days", "five"], ["inside/gone", 1], ["items/0/size", "L"], ["items/1", "x"], ["old", "Words"]]));
  assert.deepEqual(draft.data, data, "the draft itself is not touched");
  const kept = joined(fits, words, {});
  assert.deepEqual(kept, { days: "five", old: "Words", inside: { gone: 1, here: 2 }, items: fits.items, "a/b": true, "Items, 0, Size": "L", "Items, 1": "x" });
  assert.deepEqual(joined({ days: 5 }, words.filter(({ path }) => path[0] === "days"), {}), { days: 5, Days: "five" }, "a place that is taken is not overwritten");
  assert.equal(parted({ ...draft, templateChanged: false }).words.length, 0);
  assert.match(otherTemplate, /^[0-9a-f]{32}$/);
});

const view = (over: Partial<FormView>): FormView => ({
  form: { ...form({}), formType: "Form" },
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
  const fits = (of: FormView) => initialData(of).fits;
  assert.deepEqual(fits(view({})), { text: "hello" });
  assert.deepEqual(fits(view({ submittedAt: 1 })), { days: 0, text: "hello" });
  assert.deepEqual(fits(view({ draft: { revision: 1, savedAt: 1, data: { days: 2 } } })), { days: 2 });
  assert.deepEqual(fits(view({ template: { formId: "c", name: "C", description: "", items: [{ id: "a", label: "A", help: "", required: false }] }, data: { a: true, b: true } })), { a: true });
  assert.deepEqual(fits(view({ template: null })), {});
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
  assert.equal(titlesAt(schema, ["items", "1", "unitPrice"]).join(", "), "Thing 2, Unit price");
  assert.equal(titlesAt({ $ref: "#" }, ["x"]).join(", "), "X");
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

test("a timer says what it will do", () => {
  const words = wordsOf(undefined);
  const timer = { id: "1", event: "after.P2D.review", stateMachineId: "main", nodeId: "review", due: "2027-01-15T08:00:00.000Z", incident: false };
  assert.equal(timerWords({ ...timer, targetId: "overdue", sends: ["mail"] }, words), "Changes to “Overdue”");
  assert.equal(timerWords({ ...timer, sends: ["mail"] }, words), "Sends an email reminder");
  assert.equal(timerWords({ ...timer, sends: ["webhook"] }, words), "Notifies another service");
  assert.equal(timerWords(timer, words), "Timer of “Review”");
  assert.equal(timerWords({ ...timer, nodeId: null, event: "remind" }, words), "Timer of “Remind”");
});

test("what nothing took is an attempt, and nothing that its user did", () => {
  const words = wordsOf({ events: [{ name: "approve", label: "Approve", done: "approved it" }, { name: "note", label: "Note", done: "" }], nodes: [], stateMachines: [] } as unknown as Presentation);
  assert.equal(wordingOf({ user: "alice", transitionEvent: "" }, words), "created");
  assert.equal(wordingOf({ user: "alice", transitionEvent: "approve" }, words), "done");
  assert.equal(wordingOf({ user: "paulo", transitionEvent: "parent.cancelled" }, words), "cancelled", "also where no parent has done it");
  assert.equal(wordingOf({ user: "alice", transitionEvent: "note" }, words), "event");
  assert.equal(wordingOf({ user: "alice", transitionEvent: "approve", attempt: true }, words), "attempt");
  assert.equal(wordingOf({ user: "alice", transitionEvent: "note", attempt: true }, words), "attempt");
  assert.equal(wordingOf({ user: "system", transitionEvent: "after.P2D.review", attempt: true }, words), "event");
});
