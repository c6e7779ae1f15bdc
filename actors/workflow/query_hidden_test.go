package workflow_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/identity"
	"troupe/actors/query"
)

// secret has instances that only their owners may see.
const secret = `
id: secret
indexes: [svcPublic.n, svcPublic.owner, svcPrivate.p]
allow: {create: {roles: [member]}, read: {when: 'svcPublic.owner == user.id'}, send: {roles: [member]}}
context: {svcPrivate: {p: 0}}
events: {set: {private: true}, close: {private: true}}
stateMachines: {m: {initial: open, states: {open: {on: {set: {}, close: closed}}, closed: {on: {set: {}}}}}}
`

// TestAnswersDependOnNothingHidden asks the same of a store before and after what the caller may not see has changed: data, states, and how many
// there are. Everything but the time must be the same.
func TestAnswersDependOnNothingHidden(t *testing.T) {
	h := startQueries(t, query.Options{})
	l := h.Limits
	l.Peek, l.ProbeKeys, l.Sort, l.Merge = 3, 4, 6, 16
	h.Publish(secret)
	own := make([]string, 9)
	for n := range own {
		own[n] = fmt.Sprintf(`{"owner":"boss","n":%d}`, n)
	}
	ids := h.Fill("secret", own)
	slices.Sort(ids)
	var hidden []string
	hide := func(count int) {
		for n := range count {
			hidden = append(hidden, h.Make(boss, "secret", fmt.Sprintf(`{"owner":"eve","n":%d}`, n%10)))
		}
	}
	hide(12)
	h.MustSend(boss, "secret", ids[4], "set", `{"svcPrivate":{"p":7}}`)
	h.AwaitIndexes()

	filters := []string{
		"", `{"svcPublic.n":4}`, `{"svcPublic.n":{"$gte":3}}`, `{"svcPublic.n":{"$gte":2,"$lte":40}}`, `{"svcPublic.owner":"eve"}`, `{"svcPublic.owner":"boss"}`,
		`{"svcPrivate.p":7}`, `{"svcPrivate.p":{"$gt":500}}`, `{"svcPrivate.p":{"$lt":500}}`, `{"svcPrivate.p":{"$in":[7,999]},"svcPublic.n":{"$gte":0}}`, `{"states.nodeId":"closed"}`,
		`{"states":{"$elemMatch":{"stateMachineId":"m","nodeId":"open"}}}`, `{"$or":[{"svcPrivate.p":999},{"svcPublic.n":1}]}`, `{"$or":[{"svcPrivate.p":{"$gte":7}},{"states.nodeId":"closed"}]}`,
		`{"_id":{"$in":["` + hidden[0] + `","` + ids[4] + `"]}}`, `{"$or":[{"_id":"` + hidden[0] + `"},{"svcPublic.n":{"$gt":6}}]}`, `{"svcHistory":{"$size":1}}`, `{"svcPublic.none":null}`,
	}
	answers := func() map[string]string {
		out := map[string]string{}
		for _, who := range []*identity.Principal{boss, member} {
			for _, f := range filters {
				for _, sort := range []string{"", "-_id", "svcPublic.n", "-svcPrivate.p"} {
					if who == member && (strings.Contains(f, "svcPrivate") || strings.Contains(sort, "svcPrivate")) {
						continue
					}
					for _, limit := range []int{0, 1, 2, 9, 30} {
						req := query.Request{Caller: who, WorkflowID: "secret", Filter: f, Sort: sort, Limit: limit, Count: limit > 0, Explain: who == boss}
						out[fmt.Sprintf("%s %s sort=%s limit=%d", who.ID, f, sort, limit)] = h.told(&req)
					}
				}
			}
		}
		return out
	}
	before := answers()
	for n, id := range hidden {
		h.MustSend(boss, "secret", id, "set", fmt.Sprintf(`{"svcPublic":{"n":%d},"svcPrivate":{"p":999}}`, 4+n%3*10))
		h.MustSend(boss, "secret", id, "close", "")
	}
	hide(60)
	h.AwaitIndexes()
	for name, after := range answers() {
		assert.Equal(t, before[name], after, "%s:\nbefore", name)
	}
	// Pages still have everything that she may see.
	all, err := h.pages(query.Request{Caller: boss, WorkflowID: "secret", Limit: 2})
	assert.True(t, err == nil && slices.Equal(all, ids), "in pages: %v, %v, want %v", all, err, ids)
}

func (h *queries) told(req *query.Request) string {
	h.t.Helper()
	var items []string
	end, err := h.Service.Query(h.t.Context(), req, func(item []byte) error {
		items = append(items, string(item))
		return nil
	})
	if err != nil {
		return err.Error()
	}
	said, err := json.Marshal(end)
	h.Must(err)
	return strings.Join(items, "\n") + string(said)
}
