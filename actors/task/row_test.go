package task

import (
	"bytes"
	"testing"
	"time"

	"troupe/statemachine"
)

// FuzzParseRow holds that the row of a task is read back as it was written, and that any other bytes are refused.
func FuzzParseRow(f *testing.F) {
	id := statemachine.PartID{Sequence: 7, Number: 2}
	at := time.UnixMilli(1_800_000_000_123).UTC()
	decided := &Decided{
		Task: statemachine.Task{
			ID: id, At: statemachine.Position{Machine: "main", Node: "review"}, Created: at, Due: at, Priority: 70, Assignee: "mary", Form: "slip",
		},
		TaskText: statemachine.TaskText{Title: statemachine.Text{{Language: "en", Text: "Look"}, {Language: "de", Text: "Sieh"}}, Description: statemachine.Plain("x")},
		By:       "mary", Event: "approve", When: at,
	}
	f.Add([]byte{})
	f.Add(row{Workflow: "leave"}.append(nil))
	f.Add(row{Workflow: "leave", Decided: decided}.append(nil))
	f.Add(row{Workflow: "leave", Decided: &Decided{}}.append(nil))
	f.Fuzz(func(t *testing.T, stored []byte) {
		of, err := parseRow(id, stored)
		if err != nil {
			return
		}
		if of.Decided != nil && of.Decided.ID != id {
			t.Errorf("got the task %v", of.Decided.ID)
		}
		written := of.append(nil)
		again, err := parseRow(id, written)
		if err != nil || !bytes.Equal(again.append(nil), written) {
			t.Errorf("%x: written as %x, and read as %+v, %v", stored, written, again, err)
		}
	})
}
