package workflow_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/persistence/key"
	"troupe/statemachine/data"
)

const (
	atStart = `[{"stateMachineId":"main","nodeId":"draft"}]`
	inWork  = `[{"stateMachineId":"main","nodeId":"review"}]`
	atEnd   = `[{"stateMachineId":"main","nodeId":"approved"}]`
)

func leaveForm() form.Form {
	return form.Form{Kind: form.KindForm, TemplateID: "leave-form", Name: "Leave", By: "john.doe", Role: "employee"}
}

func TestTheLifeOfAForm(t *testing.T) {
	drawn := 0
	newID := func() string { drawn++; return []string{"first", "second"}[drawn-1] }
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	f := leaveForm().Begin([]byte(atStart), false, at(10), newID)
	for _, step := range []struct {
		name                string
		states              string
		done                bool
		at                  int64
		moved               bool
		submission          string
		submittedAt, doneAt int64
		leftAt              int64
	}{
		{"a step that stays at the start", atStart, false, 20, false, "", 0, 0, 0},
		{"the first move submits", inWork, false, 30, true, "first", 30, 0, 30},
		{"back at the start it is not submitted, but keeps its id", atStart, false, 40, false, "first", 30, 0, 30},
		{"submitted again", inWork, false, 50, true, "first", 30, 0, 50},
		{"at its end", atEnd, true, 60, true, "first", 30, 60, 50},
		{"a step at the end does not make it younger", atEnd, true, 70, true, "first", 30, 60, 50},
		{"left its end", inWork, false, 80, true, "first", 30, 0, 50},
	} {
		f = f.Next([]byte(step.states), step.done, at(step.at), newID)
		if f.Moved() != step.moved || f.SubmissionID != step.submission || f.SubmittedAt != step.submittedAt || f.DoneAt != step.doneAt || f.LeftAt != step.leftAt {
			t.Errorf("%s: got %+v", step.name, f)
		}
	}
	assert.Equal(t, 1, drawn, "ids were drawn, want 1")
	ended := leaveForm().Begin([]byte(atEnd), true, at(90), newID)
	assert.True(t, ended.Moved() && ended.SubmissionID == "second" && ended.DoneAt == 90, "a form whose creation was its end: got %+v", ended)
}

func FuzzForm(f *testing.F) {
	made := leaveForm().Begin([]byte(atStart), false, time.UnixMilli(1), nil)
	row := form.Row{Form: made.Next([]byte(atEnd), true, time.UnixMilli(5), func() string { return "01ARZ3NDEKTSV4RRFFQ69G5FAV" }), WorkflowID: "leave-request", Nodes: "approved"}
	for _, whole := range [][]byte{made.Append(nil), row.Append(nil)} {
		for n := range whole {
			f.Add(whole[:n])
		}
		f.Add(whole)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		made, err := form.Parse(b)
		if err == nil {
			again, err := form.Parse(made.Append(nil))
			assert.True(t, err == nil && bytes.Equal(again.Append(nil), made.Append(nil)), "%x: got %+v, then %+v, %v", b, made, again, err)
		} else if !errors.Is(err, form.ErrDamaged) {
			t.Errorf("error of another kind: %v", err)
		}
		row, err := form.ParseRow(b)
		if err == nil {
			again, err := form.ParseRow(row.Append(nil))
			assert.True(t, err == nil && bytes.Equal(again.Append(nil), row.Append(nil)), "%x: got %+v, then %+v, %v", b, row, again, err)
		} else if !errors.Is(err, form.ErrDamaged) {
			t.Errorf("error of another kind: %v", err)
		}
	})
}

// loadDraft stores a draft and loads it.
func (s *formShelf) loadDraft(stored []byte) (*form.Draft, error) {
	w, at := s.store.NewBatch(0), key.Draft(nil, 0, key.ID{1}, "john.doe")
	w.Set(at, stored)
	if err := s.store.Commit(w); err != nil {
		return nil, err
	}
	return form.LoadDraft(s.store, at, math.MinInt64)
}

func FuzzDraft(f *testing.F) {
	d := form.Draft{Revision: 1 << 40, SavedAt: 5, Data: data.Value(`{"a":[1,"x"]}`)}
	of := d
	of.Template = form.DigestOf([]byte(`{"type":"object"}`))
	for _, whole := range [][]byte{d.Append(nil), of.Append(nil)} {
		for n := range whole {
			f.Add(whole[:n])
		}
		f.Add(whole)
	}
	s := newFormShelf(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := s.loadDraft(b)
		if d == nil { // without an error it was saved at math.MinInt64
			assert.True(t, err == nil || errors.Is(err, failure.ErrExecution), "error of another kind: %v", err)
			return
		}
		again, err := s.loadDraft(d.Append(nil))
		assert.True(t, err == nil && again.Revision == d.Revision && again.Template == d.Template && bytes.Equal(again.Data, d.Data), "%v %v %v %v", b, d, again, err)
	})
}

// TestAStoredDraft is read by all later programs.
func TestAStoredDraft(t *testing.T) {
	template := form.DigestOf([]byte("x"))
	stored := append(append([]byte{1, 7, 10}, template[:]...), `{"a":1}`...)
	d, err := newFormShelf(t).loadDraft(stored)
	require.True(t, err == nil && d.Revision == 7 && d.SavedAt == 5 && d.Template == template && string(d.Data) == `{"a":1}`, "got %+v, %v", d, err)
	assert.Equal(t, string(stored), string(d.Append(nil)), "written again")
}

func TestFormDigests(t *testing.T) {
	d := form.DigestOf([]byte("x"))
	got, ok := form.ParseDigest(d.String())
	assert.True(t, ok && got == d, "read again: got %s, %t, want %s", got, ok, d)
	for _, bad := range []string{"", "x", d.String()[1:], d.String() + "00", strings.ToUpper(d.String()), " " + d.String()} {
		_, ok := form.ParseDigest(bad)
		assert.False(t, ok, "%q was taken", bad)
	}
	assert.Empty(t, (form.Digest{}).String(), "the digest of nothing is shown")
}
