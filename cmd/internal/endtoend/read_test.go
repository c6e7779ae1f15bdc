package endtoend

import (
	"encoding/json"
	"net/url"
	"testing"
)

// item is an entry of the query-all endpoint.
type item struct {
	id, public string
	states     []position
}

// query asks for instances with a query string, "" for none.
func (u user) query(t testing.TB, workflow, parameters string) answer {
	t.Helper()
	if parameters != "" {
		parameters = "?" + parameters
	}
	return u.get(t, root+"/instances/"+workflow+parameters)
}

// items reads the answer of query-all.
func (a answer) items(t testing.TB) []item {
	t.Helper()
	wantStatus(t, a, 200)
	whole := objectOf(t, a.body, "instances")
	var out []item
	for _, text := range decode[[]json.RawMessage](t, whole["instances"]) {
		m := objectOf(t, string(text), "_id", "workflowId", "svcPublic", "states")
		one := item{id: decode[string](t, m["_id"]), public: string(m["svcPublic"])}
		for _, s := range decode[[]json.RawMessage](t, m["states"]) {
			p := objectOf(t, string(s), "stateMachineId", "nodeId")
			one.states = append(one.states, position{decode[string](t, p["stateMachineId"]), decode[string](t, p["nodeId"])})
		}
		out = append(out, one)
	}
	return out
}

// ids returns the _id of each item.
func ids(items []item) []string {
	out := []string{}
	for _, i := range items {
		out = append(out, i.id)
	}
	return out
}

// instances lists the ids of a workflow's instances.
func (s *scene) instances(t testing.TB, u user, workflow string) []string {
	t.Helper()
	return ids(u.query(t, workflow, "").items(t))
}

func escape(s string) string { return url.QueryEscape(s) }

// history asks for a page of an instance's history.
func (u user) history(t testing.TB, workflow, instance, parameters string) answer {
	t.Helper()
	return u.get(t, root+"/instance/"+workflow+"/"+instance+"/history"+parameters)
}

// events asks what may be sent to an instance now.
func (u user) events(t testing.TB, workflow, instance string) answer {
	t.Helper()
	return u.get(t, root+"/instance/"+workflow+"/"+instance+"/events")
}
