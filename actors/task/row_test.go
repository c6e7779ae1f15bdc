package task

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/statemachine"
)

var rowID = statemachine.ElementID{Sequence: 7, Number: 2}

// rowSamples are rows each of whose fields has a value of its own.
func rowSamples() []row {
	at := func(s int64) time.Time { return time.UnixMilli(1_800_000_000_123 + s*1000).UTC() }
	decided := &Decided{
		Task: statemachine.Task{
			ID: rowID, At: statemachine.Position{Machine: "main", Node: "review"}, Created: at(0), Due: at(1), Priority: 70, Assignee: "mary", Form: "slip",
		},
		TaskText: statemachine.TaskText{Title: statemachine.Text{{Language: "en", Text: "Look"}, {Language: "de", Text: "Sieh"}}, Description: statemachine.Plain("x")},
		By:       "john", Event: "approve", When: at(2),
	}
	return []row{{Workflow: "leave"}, {Workflow: "leave", Decided: decided}, {Workflow: "leave", Decided: &Decided{Task: statemachine.Task{ID: rowID}}}}
}

func TestARowIsReadAsItWasWritten(t *testing.T) {
	for _, want := range rowSamples() {
		got, err := parseRow(rowID, want.append(nil))
		assert.True(t, err == nil && reflect.DeepEqual(got, want), "got %+v, %+v, %v, want %+v", got, got.Decided, err, want.Decided)
	}
}

// FuzzParseRow holds that any bytes are refused as the row of a task, or are one that is written and read again.
func FuzzParseRow(f *testing.F) {
	f.Add([]byte{})
	for _, sample := range rowSamples() {
		f.Add(sample.append(nil))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		of, err := parseRow(rowID, stored)
		if err != nil {
			return
		}
		written := of.append(nil)
		again, err := parseRow(rowID, written)
		assert.True(t, err == nil && bytes.Equal(again.append(nil), written), "%x: written as %x, and read as %+v, %v", stored, written, again, err)
	})
}
