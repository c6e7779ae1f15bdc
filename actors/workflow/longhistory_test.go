package workflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/message"
	"troupe/actors/workflow"
	"troupe/persistence/key"
)

// wide is a workflow of many state machines with long names, of which each event moves one.
func wide(machines int) string {
	var b strings.Builder
	b.WriteString("id: wide\nstateMachines:\n")
	for k := range machines {
		long := strings.Repeat("x", 50)
		fmt.Fprintf(&b, "  m%d: {states: {a%s%d: {on: {e%d: b%s%d}}, b%s%d: {on: {e%d: a%s%d, end: c}}, c: {type: final}}}\n", k, long, k, k, long, k, long, k, k, long, k)
	}
	return b.String()
}

// TestALongHistoryIsAnsweredInPart: entries keep only what moved, and an answer has the newest 16 MiB, the same bytes when it is repeated.
func TestALongHistoryIsAnsweredInPart(t *testing.T) {
	if testing.Short() {
		t.Skip("the test run without the detector has it, and nothing of it is concurrent")
	}
	const machines, events, most = 100, 1500, 16 << 20
	h := start(t, workflow.Options{})
	h.Publish(leave, order, wide(machines))
	id := h.Make(boss, "wide", "")
	for n := 1; n < events; n++ {
		send := event(boss, "wide", id, fmt.Sprint("e", n%machines), "", "")
		send.WithHistory = false
		_, err := h.Send(context.Background(), send)
		require.NoError(t, err)
	}
	last := h.MustSend(boss, "wide", id, "e0", "", "key").AppendRecord(nil)
	var record struct {
		From    uint64 `json:"historyFrom"`
		History []struct {
			Start []string `json:"startState"`
			End   []string `json:"endState"`
		} `json:"svcHistory"`
	}
	check := func(what string, text []byte) {
		t.Helper()
		record.From, record.History = 0, nil
		err := json.Unmarshal(text, &record)
		require.True(t, err == nil && len(record.History) != 0, "%s: %v", what, err)
		got := record.From + uint64(len(record.History)) - 1
		assert.True(t, got == events+1 && record.From >= 2 && len(text) <= most+100_000 && len(text) >= most-30_000, "%v %v %v %v", what, len(text), record.From, got)
		for k, e := range record.History {
			require.True(t, len(e.Start) == machines && len(e.End) == machines && (k <= 0 || fmt.Sprint(e.Start) == fmt.Sprint(record.History[k-1].End)),
				"%s: entry %d: %v", what, k, e)
		}
	}
	check("an event", last)
	h.Restart()
	again := h.MustSend(boss, "wide", id, "e0", "", "key").AppendRecord(nil)
	assert.Equal(t, string(last), string(again), "repeated it has %d bytes instead of %d, or others", len(again), len(last))
	check("the instance", h.MustLook(boss, "wide", id).AppendRecord(nil))
	size := 0
	h.Must(h.Store.Scan(key.EntryPrefix(nil, h.Store.ShardOf(h.ID(id)), h.ID(id)), func(_, value []byte) error { size += len(value); return nil }))
	assert.LessOrEqual(t, size/events, 1000, "an entry")
	page, err := h.History(&message.History{Caller: boss, WorkflowID: "wide", InstanceID: id, Limit: 3, Descending: true})
	if err != nil || !strings.HasSuffix(string(last[:strings.LastIndex(string(last), `],"historyFrom"`)]), string(page.Entries[:strings.Index(string(page.Entries), `},{`)+1])) {
		t.Errorf("the newest page: %.200s, %v", page.Entries, err)
	}
}
