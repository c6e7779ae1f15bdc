package form

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

const (
	atStart = `[{"stateMachineId":"main","nodeId":"draft"}]`
	inWork  = `[{"stateMachineId":"main","nodeId":"review"}]`
	atEnd   = `[{"stateMachineId":"main","nodeId":"approved"}]`
)

func leave() Form {
	return Form{Kind: KindForm, TemplateID: "leave-form", Name: "Leave", By: "john.doe", Role: "employee"}
}

func TestTheLifeOfAForm(t *testing.T) {
	drawn := 0
	newID := func() string { drawn++; return []string{"first", "second"}[drawn-1] }
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	f := leave().Begin([]byte(atStart), false, at(10), newID)
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
	ended := leave().Begin([]byte(atEnd), true, at(90), newID)
	assert.True(t, ended.Moved() && ended.SubmissionID == "second" && ended.DoneAt == 90, "a form whose creation was its end: got %+v", ended)
}

func FuzzParse(f *testing.F) {
	form := leave().Begin([]byte(atStart), false, time.UnixMilli(1), nil)
	row := Row{Form: form.Next([]byte(atEnd), true, time.UnixMilli(5), func() string { return "01ARZ3NDEKTSV4RRFFQ69G5FAV" }), WorkflowID: "leave-request", Nodes: "approved"}
	for _, whole := range [][]byte{form.Append(nil), row.Append(nil)} {
		for n := range whole {
			f.Add(whole[:n])
		}
		f.Add(whole)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		form, err := Parse(b)
		if err == nil {
			again, err := Parse(form.Append(nil))
			assert.True(t, err == nil && bytes.Equal(again.Append(nil), form.Append(nil)), "%x: got %+v, then %+v, %v", b, form, again, err)
		} else if !errors.Is(err, ErrDamaged) {
			t.Errorf("error of another kind: %v", err)
		}
		row, err := ParseRow(b)
		if err == nil {
			again, err := ParseRow(row.Append(nil))
			assert.True(t, err == nil && bytes.Equal(again.Append(nil), row.Append(nil)), "%x: got %+v, then %+v, %v", b, row, again, err)
		} else if !errors.Is(err, ErrDamaged) {
			t.Errorf("error of another kind: %v", err)
		}
	})
}
