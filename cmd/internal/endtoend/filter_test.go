package endtoend

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestInterfaceFilter(t *testing.T) { runLines(t, filterLines()) }

func filterLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "Filter"`, "filter on states.nodeId", filterByNode},
		{`gateway/INTERFACE.md, "Filter"`, "equality on dotted paths", filterByEquality},
		{`gateway/INTERFACE.md, "Filter"`, "all conditions must hold", filterByConjunction},
		{`gateway/INTERFACE.md, "Filter"`, "operators that are not supported are refused by name", filterRefusesOperators},
		{`gateway/INTERFACE.md, "Filter"`, "other roots are refused", filterRefusesRoots},
		{`gateway/INTERFACE.md, "Private data in queries"`, "400 for all but holders of mod-workflows", filterOnPrivate},
		{`gateway/INTERFACE.md, "Privileges"`, "mod-workflows", filterOnPrivate},
	}
}

func escape(s string) string { return url.QueryEscape(s) }

// matching returns which of the instances match a filter, by their names.
func (s *scene) matching(t testing.TB, u user, filter string, names map[string]string) []string {
	t.Helper()
	out := []string{}
	for _, i := range u.query(t, "plain", "filter="+escape(filter)).items(t) {
		if name, ours := names[i.id]; ours {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func filterByNode(t *testing.T, s *scene) {
	draft := s.ann.create(t, "order", "").record(t)
	pending := s.ann.create(t, "order", "").record(t)
	s.ann.event(t, "order", pending.ID, "submit", "").record(t)
	paid := s.ann.create(t, "order", "").record(t)
	s.ann.event(t, "order", paid.ID, "pay", "").record(t)
	for node, want := range map[string][]string{
		"draft": {draft.ID, paid.ID}, "pending": {pending.ID}, "unpaid": {draft.ID, pending.ID}, "paid": {paid.ID}, "nowhere": {},
	} {
		for _, filter := range []string{`{"states.nodeId":"` + node + `"}`, `{"states.nodeId":{"$oid":"` + node + `"}}`} {
			got := ids(s.bob.query(t, "order", "filter="+escape(filter)).items(t))
			if !slices.Equal(got, want) {
				t.Errorf("filter %s: got %v, want %v", filter, got, want)
			}
		}
	}
	for filter, want := range map[string][]string{
		`{"states.stateMachineId":"review"}`:                        {draft.ID, pending.ID, paid.ID},
		`{"states.0.nodeId":"pending"}`:                             {pending.ID},
		`{"states.1.nodeId":"pending"}`:                             {},
		`{"states":{"stateMachineId":"billing","nodeId":"paid"}}`:   {paid.ID},
		`{"states":{"nodeId":"paid","stateMachineId":"billing"}}`:   {},
		`{"states.nodeId":"draft","states.stateMachineId":"other"}`: {},
		`{"svcHistory.transitionEvent":"pay"}`:                      {paid.ID},
		`{"svcHistory.0.user":"ann"}`:                               {draft.ID, pending.ID, paid.ID},
		`{"workflowId":"order"}`:                                    {draft.ID, pending.ID, paid.ID},
		`{"workflowId":"plain"}`:                                    {},
		`{"_id":"` + paid.ID + `"}`:                                 {paid.ID},
	} {
		if got := ids(s.bob.query(t, "order", "filter="+escape(filter)).items(t)); !slices.Equal(got, want) {
			t.Errorf("filter %s: got %v, want %v", filter, got, want)
		}
	}
}

// sample is svcPublic of instances to filter, by name.
var sample = map[string]string{
	"one":     `{"n":1,"t":"x","o":{"a":1,"b":2},"l":[1,2],"d":{"e":{"f":"deep"}}}`,
	"onedot":  `{"n":1.0,"t":"X","o":{"b":2,"a":1},"l":[2,1],"d":{"e":[{"f":"deep"},{"f":"other"}]}}`,
	"text":    `{"n":"1","t":"x ","l":[[1,2],3],"d":{"e.f":"deep"}}`,
	"true":    `{"n":true,"l":[],"d":[{"e":{"f":"deep"}}]}`,
	"null":    `{"n":null,"l":[null],"d":null}`,
	"missing": `{"l":1}`,
	"large":   `{"n":9007199254740993,"l":[{"n":1},{"n":2}]}`,
	"larger":  `{"n":9007199254740992,"l":"1"}`,
}

// sampleInstances creates the sample, and returns the names by _id.
func (s *scene) sampleInstances(t *testing.T) map[string]string {
	t.Helper()
	names := map[string]string{}
	for name, public := range sample {
		names[s.ann.create(t, "plain", `{"svcPublic":`+public+`,"svcPrivate":{"name":"`+name+`"}}`).record(t).ID] = name
	}
	return names
}

func filterByEquality(t *testing.T, s *scene) {
	names := s.sampleInstances(t)
	all := []string{"large", "larger", "missing", "null", "one", "onedot", "text", "true"}
	for filter, want := range map[string][]string{
		`{}`:                                  all,
		``:                                    all,
		` { } `:                               all,
		`{"svcPublic.n":1}`:                   {"one", "onedot"},
		`{"svcPublic.n":1.0}`:                 {"one", "onedot"},
		`{"svcPublic.n":10e-1}`:               {"one", "onedot"},
		`{"svcPublic.n":"1"}`:                 {"text"},
		`{"svcPublic.n":true}`:                {"true"},
		`{"svcPublic.n":9007199254740993}`:    {"large"},
		`{"svcPublic.n":9007199254740992}`:    {"larger"},
		`{"svcPublic.n":1e400}`:               {},
		`{"svcPublic.n":null}`:                {"missing", "null"},
		`{"svcPublic.t":"x"}`:                 {"one"},
		`{"svcPublic.o":{"a":1,"b":2}}`:       {"one"},
		`{"svcPublic.o":{"b":2,"a":1.0}}`:     {"onedot"},
		`{"svcPublic.o.a":1}`:                 {"one", "onedot"},
		`{"svcPublic.l":[1,2]}`:               {"one", "text"},
		`{"svcPublic.l":1}`:                   {"missing", "one", "onedot"},
		`{"svcPublic.l":3}`:                   {"text"},
		`{"svcPublic.l":[]}`:                  {"true"},
		`{"svcPublic.l":null}`:                {"null"},
		`{"svcPublic.l.0":1}`:                 {"one"},
		`{"svcPublic.l.0":[1,2]}`:             {"text"},
		`{"svcPublic.l.1.n":2}`:               {"large"},
		`{"svcPublic.l.n":2}`:                 {"large"},
		`{"svcPublic.d.e.f":"deep"}`:          {"one", "onedot", "true"},
		`{"svcPublic.d.e.f":"other"}`:         {"onedot"},
		`{"svcPublic.d.e.1.f":"other"}`:       {"onedot"},
		`{"svcPublic.__proto__.x":null}`:      all,
		`{"svcPublic.t":"\u0078"}`:            {"one"},
		`{"svcPublic":` + sample["one"] + `}`: {"one"},
	} {
		if got := s.matching(t, s.bob, filter, names); !slices.Equal(got, want) {
			t.Errorf("filter %s: got %v, want %v", filter, got, want)
		}
	}
}

func filterByConjunction(t *testing.T, s *scene) {
	names := s.sampleInstances(t)
	for filter, want := range map[string][]string{
		`{"svcPublic.n":1,"svcPublic.t":"x"}`:                         {"one"},
		`{"svcPublic.n":1,"svcPublic.t":"y"}`:                         {},
		`{"svcPublic.n":1,"states.nodeId":"a"}`:                       {"one", "onedot"},
		`{"svcPublic.n":1,"states.nodeId":"b"}`:                       {},
		`{"states.nodeId":"a","states.stateMachineId":"main"}`:        {"large", "larger", "missing", "null", "one", "onedot", "text", "true"},
		`{"svcHistory.user":"ann","svcPublic.n":true,"states.0":"a"}`: {},
	} {
		if got := s.matching(t, s.bob, filter, names); !slices.Equal(got, want) {
			t.Errorf("filter %s: got %v, want %v", filter, got, want)
		}
	}
}

func filterRefusesOperators(t *testing.T, s *scene) {
	for _, operator := range []string{"$where", "$expr", "$function", "$jsonSchema", "$text", "$near", "$rand", "$nonsense", "$GT"} {
		for _, filter := range []string{
			`{"` + operator + `":[{"svcPublic.n":1}]}`, `{"svcPublic.n":{"` + operator + `":1}}`, `{"states.nodeId":{"` + operator + `":"a"}}`,
		} {
			a := s.adm.query(t, "plain", "filter="+escape(filter))
			if reason := faultReason(a, 400, "InvalidContent"); reason != "" {
				t.Errorf("filter %s: %s", filter, reason)
			} else if !strings.Contains(a.body, operator) {
				t.Errorf("filter %s: the message does not name %s: %s", filter, operator, a.body)
			}
		}
	}
}

func filterRefusesRoots(t *testing.T, s *scene) {
	for _, path := range []string{"other", "_ID", "state", "svcpublic.x", "svcRedirect", "version", "user", "__proto__.x", " svcPublic.x", ""} {
		if reason := faultReason(s.adm.query(t, "plain", "filter="+escape(`{"`+path+`":1}`)), 400, "InvalidContent"); reason != "" {
			t.Errorf("path %q: %s", path, reason)
		}
	}
}

func filterOnPrivate(t *testing.T, s *scene) {
	names := s.sampleInstances(t)
	const filter = `{"svcPrivate.name":"one"}`
	if got := s.matching(t, s.adm, filter, names); !slices.Equal(got, []string{"one"}) {
		t.Errorf("with mod-workflows: got %v, want one", got)
	}
	for name, u := range map[string]user{"ann": s.ann, "bob": s.bob, "eve": s.eve} {
		for _, f := range []string{filter, `{"svcPrivate":{"name":"one"}}`, `{"svcPublic.n":1,"svcPrivate.x":null}`} {
			if reason := faultReason(u.query(t, "plain", "filter="+escape(f)), 400, "InvalidContent"); reason != "" {
				t.Errorf("%s asks %s: %s", name, f, reason)
			}
		}
	}
}
