package gateway_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/gateway/wiretest"
	_ "troupe/internal/fixedseed"
)

// result is one of a batch.
type result struct {
	Status                                 int
	WorkflowID, InstanceID, Error, Message string
	Sequence                               int
}

// sendBatch sends items as an array, or as lines.
func (u user) sendBatch(t testing.TB, items []string, asLines bool) (results []result) {
	t.Helper()
	if !asLines {
		a := u.Post(t, wiretest.Root+"/events", "["+strings.Join(items, ",")+"]")
		return wiretest.Decode[struct{ Results []result }](t, a.Body).Results
	}
	headers := append([]string{"Content-Type: application/x-ndjson"}, u.Credential...)
	a := u.Send(t, request{Method: "POST", Path: wiretest.Root + "/events", Headers: headers, Body: strings.Join(items, "\n")})
	for line := range strings.Lines(a.Body) {
		results = append(results, wiretest.Decode[result](t, line))
	}
	return results
}

// TestABatchIsItsItems holds gateway/INTERFACE.md, "Batches": a batch leaves the same
// instances and gives the same results as its items one by one.
func TestABatchIsItsItems(t *testing.T) {
	s := newScene(t)
	rapid.Check(t, func(rt *rapid.T) {
		var single, many []string
		for range 3 {
			single = append(single, s.ann.Create(t, "order", "").Record(t).ID)
			many = append(many, s.ann.Create(t, "order", "").Record(t).ID)
		}
		var alone []result
		var items []string
		for range rapid.IntRange(1, 12).Draw(rt, "items") {
			n := rapid.IntRange(0, 2).Draw(rt, "instance")
			event := rapid.SampledFrom([]string{"pay", "note", "leap", "submit", "reject", "ping", "unknown"}).Draw(rt, "event")
			id := ""
			if k := rapid.IntRange(0, 6).Draw(rt, "id"); k > 0 {
				id = fmt.Sprintf(`,"id":"k%d"`, k)
			}
			body := func(instance string) string {
				return `{"workflowId":"order","instanceId":"` + instance + `","event":{"name":"` + event + `","data":{"n":1}` + id + `}}`
			}
			a := s.ann.Post(t, wiretest.Root+"/event", body(single[n]))
			r := result{Status: a.Status, Error: a.Label(), Message: a.Message()}
			if a.Status == 200 {
				r = result{Status: 200, WorkflowID: "order", InstanceID: many[n], Sequence: len(a.Record(t).History)}
			}
			alone = append(alone, r)
			items = append(items, body(many[n]))
		}
		got := s.ann.sendBatch(t, items, rapid.Bool().Draw(rt, "lines"))
		require.True(rt, slices.Equal(got, alone), "got %+v, alone %+v", got, alone)
		for n := range single {
			require.Equal(rt, s.stripped(t, single[n]), s.stripped(t, many[n]))
		}
	})
}

// stripped is an instance of "order" without its id and times.
func (s *scene) stripped(t testing.TB, id string) string {
	r := s.ann.Load(t, "order", id).Record(t)
	for i := range r.History {
		r.History[i].TS = ""
	}
	text, err := json.Marshal([]any{r.Public, r.Private, r.States, r.History})
	require.NoError(t, err)
	return string(text)
}
