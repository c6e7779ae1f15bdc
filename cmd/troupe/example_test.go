package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"troupe/actors/home"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// exampleWorkflows returns the definitions of the example home, by id.
func exampleWorkflows(t *testing.T) map[string]*statemachine.Definition {
	t.Helper()
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := home.Load(exampleHome(t), parser)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Warnings) > 0 {
		t.Fatalf("the examples have warnings: %v", set.Warnings)
	}
	flows := map[string]*statemachine.Definition{}
	for _, w := range set.Workflows {
		flows[string(w.Parsed.ID)] = w.Parsed
	}
	return flows
}

var (
	john  = &statemachine.Caller{ID: "john.doe", Roles: []string{"employee", "inspector"}}
	mary  = &statemachine.Caller{ID: "mary.major", Roles: []string{"employee", "manager"}}
	paulo = &statemachine.Caller{ID: "paulo.santos", Roles: []string{"employee", "purchasing"}}
)

// attempt is one try at an example: what is created, and the events behind it.
type attempt struct {
	name, workflow string
	by             *statemachine.Caller
	created        string // data of create
	events         []sent
	want           string // the nodes, or what the last call answers
}

type sent struct {
	name, data string
	by         *statemachine.Caller // nil: who created it
}

// run returns the names of the nodes, or what the first refusal says.
func (a *attempt) run(d *statemachine.Definition) (in statemachine.Instance, got string, ok bool) {
	created := data.Value(a.created)
	public, _ := created.Lookup("svcPublic")
	private, _ := created.Lookup("svcPrivate")
	now := time.Unix(0, 0)
	result, err := d.Create(statemachine.Creation{ID: "i", Caller: a.by, Public: public, Private: private, Now: now})
	for _, e := range a.events {
		if err != nil {
			break
		}
		by := a.by
		if e.by != nil {
			by = e.by
		}
		before := result.Instance
		if !d.MaySend(statemachine.View{Instance: &before, Of: d}, by, now) {
			return before, statemachine.ErrForbidden.Error(), false
		}
		result, err = d.Step(&before, statemachine.Event{Name: statemachine.EventName(e.name), Data: data.Value(e.data), Caller: by, Now: now})
	}
	if err != nil {
		for _, known := range []error{statemachine.ErrInvalidData, statemachine.ErrForbidden, statemachine.ErrRejected} {
			if errors.Is(err, known) {
				return result.Instance, known.Error(), false
			}
		}
		return result.Instance, err.Error(), false
	}
	var nodes []string
	for _, p := range d.Positions(&result.Instance) {
		nodes = append(nodes, string(p.Node))
	}
	return result.Instance, strings.Join(nodes, " "), true
}

// TestNobodyApprovesHimself tries at the examples what an employee could: set
// what decides, forge a decision, and send what somebody else should.
func TestNobodyApprovesHimself(t *testing.T) {
	flows := exampleWorkflows(t)
	const (
		leave, order = "leave-request", "purchase-order"
		invalid      = "data does not fit the schema"
		forbidden    = "caller may not send the event"
		rejected     = "event is not allowed now"
	)
	item := func(quantity, price string) string {
		return `{"items":[{"name":"x","quantity":` + quantity + `,"price":` + price + `}]}`
	}
	expensive := sent{name: "submit", data: item("1", "99999")}
	for _, a := range []attempt{
		{"a short leave", leave, john, `{"svcPublic":{"from":"2026-12-21"}}`, []sent{{name: "submit", data: `{"days":2}`}}, "approved"},
		{"a long leave", leave, john, `{}`, []sent{{name: "submit", data: `{"days":30}`}}, "review"},
		{"that a manager approves", leave, john, `{}`, []sent{{name: "submit", data: `{"days":30}`}, {name: "approve", by: mary}}, "approved"},
		{"more days without asking", leave, john, `{"svcPrivate":{"daysWithoutAsking":60}}`, nil, invalid},
		{"a forged decision", leave, john, `{"svcPublic":{"decidedBy":"mary.major"}}`, nil, invalid},
		{"a forged status", leave, john, `{"svcPublic":{"status":"approved"}}`, nil, invalid},
		{"a forged requester", leave, john, `{"svcPublic":{"requester":"paulo.santos"}}`, nil, invalid},
		{"a beginning that is none", leave, john, `{"svcPublic":{"from":{"decidedBy":"mary.major"}}}`, nil, invalid},
		{"a decision by the event", leave, john, `{}`, []sent{{name: "submit", data: `{"days":1,"decidedBy":"mary.major"}`}}, invalid},
		{"a limit by the event", leave, john, `{}`, []sent{{name: "submit", data: `{"svcPrivate":{"daysWithoutAsking":60}}`}}, invalid},
		{"constants by the event", leave, john, `{}`, []sent{{name: "submit", data: `{"days":30,"const":{"daysWithoutAsking":60}}`}}, invalid},
		{"a negative leave", leave, john, `{}`, []sent{{name: "submit", data: `{"days":-1}`}}, invalid},
		{"data with a withdrawal", leave, john, `{}`, []sent{{name: "withdraw", data: `{"svcPrivate":{}}`}}, invalid},
		{"an approval of one's own", leave, john, `{}`, []sent{{name: "submit", data: `{"days":30}`}, {name: "approve"}}, forbidden},
		{"the same by a manager", leave, mary, `{}`, []sent{{name: "submit", data: `{"days":30}`}, {name: "approve"}}, forbidden},
		{"a draft that a colleague submits", leave, john, `{}`, []sent{{name: "submit", data: `{"days":30}`, by: paulo}}, forbidden},
		{"one that a manager submits", leave, john, `{}`, []sent{{name: "submit", data: `{"days":30}`, by: mary}}, forbidden},
		{"a second submission", leave, john, `{}`, []sent{{name: "submit", data: `{"days":30}`}, {name: "submit", data: `{"days":1}`}}, rejected},

		{"a cheap order", order, john, `{}`, []sent{{name: "submit", data: item("10", "100")}}, "approved waiting"},
		{"an expensive one", order, john, `{}`, []sent{expensive}, "review waiting"},
		{"that a manager approves", order, john, `{}`, []sent{expensive, {name: "approve", by: mary}}, "approved waiting"},
		{"a higher limit", order, john, `{"svcPrivate":{"approvalLimit":1e9}}`, nil, invalid},
		{"items of one's own", order, john, `{"svcPublic":{"items":[{"name":"x","quantity":-1,"price":1e9}]}}`, nil, invalid},
		{"a forged status", order, john, `{"svcPublic":{"status":"approved","total":0}}`, nil, invalid},
		{"fewer than nothing", order, john, `{}`, []sent{{name: "submit", data: item("-1", "100")}}, invalid},
		{"for less than nothing", order, john, `{}`, []sent{{name: "submit", data: item("1", "-100")}}, invalid},
		{"half of one", order, john, `{}`, []sent{{name: "submit", data: item("0.001", "99999")}}, invalid},
		{"more than numbers hold", order, john, `{}`, []sent{{name: "submit", data: item("9223372036854775807", "9223372036854775807")}}, invalid},
		{"more than can be compared", order, john, `{}`, []sent{{name: "submit", data: item("1", "1e400")}}, invalid},
		{"no items", order, john, `{}`, []sent{{name: "submit"}}, invalid},
		{"an empty list", order, john, `{}`, []sent{{name: "submit", data: `{"items":[]}`}}, invalid},
		{"a total by the event", order, john, `{}`, []sent{{name: "submit", data: `{"svcPublic":{"items":[],"total":0}}`}}, invalid},
		{"an approval of one's own", order, john, `{}`, []sent{expensive, {name: "approve"}}, forbidden},
		{"the same by a manager", order, mary, `{}`, []sent{expensive, {name: "approve"}}, forbidden},
		{"a manager's, submitted by a colleague", order, mary, `{}`, []sent{{name: "submit", data: expensive.data, by: john}}, forbidden},
		{"an order before it is approved", order, paulo, `{}`, []sent{expensive, {name: "order"}}, "review waiting"},
		{"other items after the approval", order, john, `{}`, []sent{{name: "submit", data: item("1", "1")}, {name: "submit", data: item("1", "99999")}}, "approved waiting"},
		{"an order by who asked for it", order, john, `{}`, []sent{{name: "submit", data: item("1", "1")}, {name: "order"}}, forbidden},
	} {
		in, got, _ := a.run(flows[a.workflow])
		if got != a.want {
			t.Errorf("%s: %s: got %s, want %s", a.workflow, a.name, got, a.want)
		}
		if a.name == "other items after the approval" && !strings.Contains(string(in.Public), `"total":1}`) && !strings.Contains(string(in.Public), `"total":1,`) {
			t.Errorf("%s: %s: svcPublic is %s", a.workflow, a.name, in.Public)
		}
	}
}

// TestWhateverOnePersonSends: no data and no order of events brings a person's
// own request beyond what needs no approval.
func TestWhateverOnePersonSends(t *testing.T) {
	flows := exampleWorkflows(t)
	number := rapid.SampledFrom([]string{"-1", "0", "1", "2", "2.0", "3", "60", "1e3", "1e9", "1e400", "1e-9", "10000", `"1"`, "null", "[]"})
	object := rapid.Custom(func(t *rapid.T) string {
		var members []string
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"days", "reason", "comment", "items", "note", "decidedBy", "requester", "status", "total", "daysWithoutAsking", "approvalLimit"}), 0, 3, rapid.ID[string]).Draw(t, "keys") {
			v := number.Draw(t, key)
			switch key {
			case "items":
				v = fmt.Sprintf(`[{"name":"x","quantity":%s,"price":%s}]`, number.Draw(t, "quantity"), number.Draw(t, "price"))
			case "reason", "comment", "note", "decidedBy", "requester", "status":
				v = rapid.SampledFrom([]string{`"mary.major"`, `"approved"`, `null`}).Draw(t, key)
			}
			members = append(members, fmt.Sprintf("%q:%s", key, v))
		}
		return "{" + strings.Join(members, ",") + "}"
	})
	document := rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf(`{"svcPublic":%s,"svcPrivate":%s}`, object.Draw(t, "public"), object.Draw(t, "private"))
	})
	usual := rapid.SampledFrom([]string{
		`{"days":1}`, `{"days":30}`, `{"items":[{"name":"x","quantity":2,"price":500}]}`, `{"items":[{"name":"x","quantity":2,"price":501}]}`,
	})
	honest := map[string]string{"leave-request": `{"days":2}`, "purchase-order": `{"items":[{"name":"x","quantity":2,"price":500}]}`}
	approved := 0
	rapid.Check(t, func(rt *rapid.T) {
		id := rapid.SampledFrom([]string{"leave-request", "purchase-order"}).Draw(rt, "workflow")
		a := attempt{
			by:      rapid.SampledFrom([]*statemachine.Caller{john, mary, paulo}).Draw(rt, "by"),
			created: rapid.OneOf(rapid.Just("{}"), rapid.Just("{}"), rapid.Just("{}"), document).Draw(rt, "created"),
		}
		for range rapid.IntRange(1, 3).Draw(rt, "events") {
			a.events = append(a.events, sent{
				name: rapid.SampledFrom([]string{"submit", "submit", "submit", "submit", "approve", "withdraw", "order", "receive"}).Draw(rt, "event"),
				data: rapid.OneOf(usual, usual, object, document).Draw(rt, "data"),
			})
		}
		// Whoever is refused goes on, and is honest in the end.
		d := flows[id]
		if _, _, ok := (&attempt{by: a.by, created: a.created}).run(d); !ok {
			a.created = "{}"
		}
		var taken []sent
		for _, e := range append(a.events, sent{name: "submit", data: honest[id]}) {
			if _, _, ok := (&attempt{by: a.by, created: a.created, events: append(taken, e)}).run(d); ok {
				taken = append(taken, e)
			}
		}
		a.events = taken
		in, nodes, _ := a.run(d)
		if !strings.Contains(nodes, "approved") && !strings.Contains(nodes, "closed") {
			return
		}
		approved++
		var public struct {
			Requester string
			Days      float64
			Total     float64
			Items     []struct{ Quantity, Price float64 }
		}
		if err := json.Unmarshal(in.Public, &public); err != nil {
			rt.Fatal(err)
		}
		sum := 0.0
		for _, item := range public.Items {
			if item.Quantity < 1 || item.Price < 0 {
				rt.Fatalf("%s: items %s", id, in.Public)
			}
			sum += item.Quantity * item.Price
		}
		if public.Requester != a.by.ID || public.Days > 2 || sum > 1000 || sum != public.Total || len(in.Private) > 2 {
			rt.Fatalf("%s by %s is %s with %s %s", id, a.by.ID, nodes, in.Public, in.Private)
		}
	})
	t.Logf("%d were approved", approved)
	if approved == 0 {
		t.Error("nothing was approved: the test tested nothing")
	}
}
