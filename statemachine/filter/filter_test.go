package filter

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/statemachine/data"
)

func mustParse(t testing.TB, src string) *Filter {
	t.Helper()
	f, err := Parse([]byte(src), Options{Private: true})
	if err != nil {
		t.Fatalf("Parse(%s): %v", src, err)
	}
	return f
}

func mustClean(t testing.TB, src string) data.Value {
	t.Helper()
	v, err := data.Clean([]byte(src))
	if err != nil {
		t.Fatalf("Clean(%s): %v", src, err)
	}
	return v
}

func TestRoots(t *testing.T) {
	d := Document{
		ID: "01JD", WorkflowID: "invoice",
		States:  mustClean(t, `[{"stateMachineId":"main","nodeId":"review"},{"stateMachineId":"payment","nodeId":"unpaid"}]`),
		Public:  mustClean(t, `{"a":1}`),
		Private: mustClean(t, `{"limit":1000}`),
		History: func() data.Value { return mustClean(t, `[{"user":"anna","endState":["draft","unpaid"]}]`) },
	}
	for _, c := range []struct {
		filter string
		want   bool
	}{
		{`{}`, true},
		{``, true},
		{`{"_id":"01JD"}`, true},
		{`{"_id":{"$oid":"01JD"}}`, true},
		{`{"_id":"01JE"}`, false},
		{`{"_id":["01JD"]}`, false},
		{`{"_id":null}`, false},
		{`{"_id.x":null}`, true},
		{`{"_id.0":"0"}`, false},
		{`{"workflowId":"invoice"}`, true},
		{`{"workflowId":"inv\u006fice"}`, true},
		{`{"workflowId":"Invoice"}`, false},
		{`{"_id":{"$eq":"01JD"}}`, true},
		{`{"_id":{"$ne":"01JD"}}`, false},
		{`{"_id":{"$gt":"01JC"}}`, true},
		{`{"_id":{"$gt":"01JD"}}`, false},
		{`{"_id":{"$gte":"01JD","$lt":"01JE"}}`, true},
		{`{"_id":{"$lte":"01J"}}`, false},
		{`{"_id":{"$gt":1}}`, false},
		{`{"_id":{"$in":["01JA","01JD"]}}`, true},
		{`{"_id":{"$nin":["01JA","01JD"]}}`, false},
		{`{"_id":{"$in":[null,1]}}`, false},
		{`{"_id":{"$exists":true}}`, true},
		{`{"_id":{"$type":"string"}}`, true},
		{`{"_id":{"$type":"objectId"}}`, false},
		{`{"_id":{"$regex":"^01J"}}`, true},
		{`{"_id":{"$regex":"^01j"}}`, false},
		{`{"_id":{"$size":1}}`, false},
		{`{"_id":{"$mod":[1,0]}}`, false},
		{`{"_id":{"$bitsAllClear":0}}`, false},
		{`{"_id":{"$elemMatch":{}}}`, false},
		{`{"_id":{"$all":["01JD"]}}`, true},
		{`{"_id":{"$all":[]}}`, false},
		{`{"_id.x":{"$exists":false}}`, true},
		{`{"$or":[{"_id":"01JE"},{"workflowId":{"$regex":"VOICE","$options":"i"}}]}`, true},
		{`{"states":{"$elemMatch":{"stateMachineId":"main","nodeId":{"$in":["review","done"]}}}}`, true},
		{`{"svcPrivate":{"$exists":true}}`, true},
		{`{"svcHistory":{"$elemMatch":{"user":"anna","endState":"draft"}}}`, true},
		{`{"states.nodeId":"review"}`, true},
		{`{"states.1.nodeId":"unpaid"}`, true},
		{`{"states":{"stateMachineId":"main","nodeId":"review"}}`, true},
		{`{"states":{"nodeId":"review","stateMachineId":"main"}}`, false},
		{`{"svcPrivate.limit":1000}`, true},
		{`{"svcHistory.user":"anna"}`, true},
		{`{"svcHistory.0.endState":["draft","unpaid"]}`, true},
		{`{"svcHistory.user":"anna","svcPublic.a":1}`, true},
	} {
		assert.Equal(t, c.want, mustParse(t, c.filter).Match(d), "%s matches", c.filter)
	}
	for filter, want := range map[string]bool{
		`{"states":null,"svcPublic":null,"svcPrivate.x":null,"svcHistory":null}`: true,
		`{"svcPublic.a":1}`: false,
	} {
		assert.Equal(t, want, mustParse(t, filter).Match(Document{}), "%s matches the empty document", filter)
	}
	assert.True(t, (&Filter{}).Match(d), "the zero filter does not match, want it to match everything")
}

func TestHistoryIsReadOnlyWhenNeeded(t *testing.T) {
	calls := 0
	d := Document{
		Public:  mustClean(t, `{"a":1}`),
		History: func() data.Value { calls++; return data.Value(`[{"user":"anna"}]`) },
	}
	for _, c := range []struct {
		name, filter string
		want         int
	}{
		{"no condition on it", `{"svcPublic.a":1}`, 0},
		{"another condition fails, although it stands behind", `{"svcHistory.user":"anna","svcPublic.a":2}`, 0},
		{"one condition on it", `{"svcHistory.user":"anna","svcPublic.a":1}`, 1},
		{"two conditions on it", `{"svcHistory.user":"anna","svcHistory.0.user":"anna"}`, 1},
		{"one of two is enough, and the other reads it", `{"$or":[{"svcHistory.user":"anna"},{"svcPublic.a":1}]}`, 0},
		{"one of two reads it", `{"$or":[{"svcHistory.user":"anna"},{"svcPublic.a":2}]}`, 1},
		{"it stands deep inside", `{"$nor":[{"$or":[{"svcHistory.user":"bert"},{"svcPublic.a":2}]}],"svcPublic.a":1}`, 1},
		{"what stands beside it deep inside fails", `{"$or":[{"svcHistory.user":"anna","svcPublic.a":2}]}`, 0},
	} {
		calls = 0
		mustParse(t, c.filter).Match(d)
		assert.Equal(t, c.want, calls, "%s: the history is read", c.name)
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	d := instance(t)
	history := mustClean(t, `[{"user":"anna"}]`)
	d.History = func() data.Value { return history }
	for _, filter := range []string{
		`{"states.nodeId":"review","svcPublic.lines.sku":"A-0003","svcPublic.customer.city":"K\u00f6ln","workflowId":"invoice-approval"}`,
		`{"states":{"$elemMatch":{"stateMachineId":"main","nodeId":{"$in":["review","done"]}}}}`,
		`{"svcPublic.amount":{"$gte":1000,"$lt":2e3},"svcPublic.due":{"$lte":"2026-12-31"},"svcPublic.currency":{"$exists":false}}`,
		`{"$or":[{"svcPublic.amount":{"$in":[1,2]}},{"svcPublic.requester":{"$nin":["bert",null]}}],"$nor":[{"_id":{"$gt":"02"}},{"_id":{"$in":["1","2"]}}]}`,
		`{"svcPublic.lines.quantity":{"$all":[1,2]},"svcPublic.lines":{"$size":6},"svcPublic.lines.price":{"$type":"double","$not":{"$gt":1e3}}}`,
		`{"svcPublic.amount":{"$mod":[1830,0],"$bitsAllClear":0,"$ne":7},"svcPublic.customer":{"$lt":[1]}}`,
		`{"svcHistory.user":"anna","svcPrivate.autoLimit":1000}`,
		`{"svcPublic.requester":{"$regex":"^anna\\."}}`,
	} {
		f := mustParse(t, filter)
		f.Match(d)
		assert.Zero(t, testing.AllocsPerRun(100, func() { f.Match(d) }), "%s: a match allocates", filter)
	}
	f := mustParse(t, `{"svcPublic.customer.city":{"$regex":"^K.ln$"}}`)
	assert.True(t, f.Match(d) && f.Match(Document{Public: data.Value(`{"customer":{"city":"K\u00f6ln"}}`)}))
}

// instance is a typical one, of about 1 KB.
func instance(t testing.TB) Document {
	var lines []string
	for i := range 6 {
		lines = append(lines, fmt.Sprintf(`{"sku":"A-%04d","quantity":%d,"price":%d.50,"note":"deliver to the back door, ring twice"}`, i, i+1, i))
	}
	return Document{
		ID: "01JD3V0000000000000000000A", WorkflowID: "invoice-approval",
		States:  mustClean(t, `[{"stateMachineId":"main","nodeId":"review"},{"stateMachineId":"payment","nodeId":"unpaid"}]`),
		Public:  mustClean(t, `{"customerId":"c-81726","requester":"anna.schmidt","amount":1830.75,"customer":{"street":"Domplatz 1","city":"Köln"},"lines":[`+strings.Join(lines, ",")+`],"due":"2026-12-24"}`),
		Private: mustClean(t, `{"autoLimit":1000}`),
	}
}
