package workflow_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/child"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

var (
	sender = key.ID{1, 2, 3}
	begun  = time.UnixMilli(1_800_000_000_123)
	part   = statemachine.ElementID{Sequence: 7, Number: 1}
)

func outs() []statemachine.Delivery {
	return []statemachine.Delivery{
		{Start: &statemachine.ChildStart{ID: part, Begun: begun, Workflow: "check", Version: 3, Public: data.Value(`{"a":"<&>"}`), Depth: 2}},
		{End: &statemachine.ChildEnd{ID: part, Begun: begun, Workflow: "check"}},
		{Notice: &statemachine.ParentNotice{Parent: statemachine.Parent{Workflow: "order", Instance: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Child: part}, Failed: true, Output: data.Value("1.50")}},
	}
}

func TestChildMessages(t *testing.T) {
	for i, out := range outs() {
		m, err := child.Parse(child.Of(sender, &out))
		require.True(t, err == nil && m.ElementID() == part, "%d: got %+v, %v", i, m, err)
		to := m.To()
		switch {
		case m.News != nil:
			output, err := child.Value(m.News.Output)
			assert.True(t, to.Workflow == "order" && to.Instance == "01ARZ3NDEKTSV4RRFFQ69G5FAV" && m.News.Failed && string(output) == "1.50" && err == nil, m.News)
		case to.Workflow != "check" || len(to.Instance) != 26:
			t.Errorf("%d: it is for %v", i, to)
		case m.Start != nil:
			public, err := child.Value(m.Start.Public)
			assert.True(t, string(public) == `{"a":"<&>"}` && err == nil && m.Start.Version == 3 && m.Start.Depth == 2 && m.Start.Private == nil,
				"start: %+v, %s, %v", m.Start, public, err)
		}
	}
	assert.Nil(t, child.Of(sender, &statemachine.Delivery{Webhook: "hook"}), "a webhook is a message")
}

// TestAQuestionGoesToTheRoot, as it goes to another node.
func TestAQuestionGoesToTheRoot(t *testing.T) {
	root := child.Ref{Workflow: "order", Instance: "01ARZ3NDEKTSV4RRFFQ69G5FAV"}
	body, err := json.Marshal(&child.Message{From: child.Ref{Workflow: "check", Instance: "01M7YZAB2GNTJFQE62690KHSQT"}, Part: child.Part(part), Join: &child.Join{Root: root, Child: "c"}})
	require.NoError(t, err)
	m, err := child.Parse(body)
	assert.True(t, err == nil && m.To() == root && !m.IsForParent() && m.Join.Child == "c", "got %+v, %v", m, err)
}

// TestTheIDOfAChild is the same for the same child, and another one for every other.
func TestTheIDOfAChild(t *testing.T) {
	id := child.ID(sender, part, begun)
	for what, other := range map[string]key.ID{
		"another parent": child.ID(key.ID{1, 2, 4}, part, begun), "another entry": child.ID(sender, statemachine.ElementID{Sequence: 8, Number: 1}, begun),
		"another number": child.ID(sender, statemachine.ElementID{Sequence: 7, Number: 2}, begun), "another time": child.ID(sender, part, begun.Add(time.Millisecond)),
	} {
		assert.NotEqual(t, id, other, "%s has the same child", what)
	}
	assert.Equal(t, id, child.ID(sender, part, begun), "the same child has another id")
}

func FuzzChildMessage(f *testing.F) {
	for _, out := range outs() {
		f.Add([]byte(child.Of(sender, &out)))
	}
	f.Add([]byte(`{"part":{},"start":{},"end":{}}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := child.Parse(body)
		if err != nil {
			assert.ErrorIs(t, err, child.ErrMessage)
			return
		}
		_ = m.To()
	})
}
