package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"troupe/actors/changefeed"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// GapEvent is the event of a row that stands for entries that are missing. It names no instance, and its data has the
// shard, and the times between which they were committed.
const GapEvent = "export.gap"

// Row is a history entry as targets get it.
type Row struct {
	Workflow, Instance string    // empty in the row of a gap
	At                 time.Time // that of the entry
	// Text is JSON: workflowId, instanceId, sequence, event, data as the history keeps it, user, ts, and states, those after
	// the entry; dataDigest where the history keeps no more of the data.
	Text data.Value
}

// RowOf makes the row of an entry that was read with its data.
func RowOf(e *changefeed.Entry) Row {
	member := func(name string) data.Value {
		if v, ok := e.Text.Lookup(name); ok {
			return v
		}
		return data.Value("null")
	}
	text := data.AppendString([]byte(`{"workflowId":`), e.Workflow)
	text = data.AppendString(append(text, `,"instanceId":`...), e.Name)
	text = fmt.Appendf(text, `,"sequence":%d,"event":%s,"data":%s`, e.Sequence, member("transitionEvent"), member("data"))
	if digest, ok := e.Text.Lookup("dataDigest"); ok {
		text = append(append(text, `,"dataDigest":`...), digest...)
	}
	ts := member("ts")
	text = fmt.Appendf(text, `,"user":%s,"ts":%s,"states":%s}`, member("user"), ts, e.States)
	at, err := time.Parse(statemachine.TimeLayout, ts.Text())
	if err != nil {
		at = time.UnixMilli(e.Place.Time()) // NB: an entry of a store that is older than the layout
	}
	return Row{e.Workflow, e.Name, at.UTC(), text}
}

// ParseRow reads a row as a service answered it.
func ParseRow(text []byte) (Row, error) {
	var of struct {
		WorkflowID string    `json:"workflowId"`
		InstanceID string    `json:"instanceId"`
		TS         time.Time `json:"ts"`
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return Row{}, err
	}
	if of.WorkflowID == "" || of.InstanceID == "" {
		return Row{}, errors.New("a row names no instance")
	}
	return Row{of.WorkflowID, of.InstanceID, of.TS.UTC(), text}, nil
}

// Gap is the row of a gap of which only the time is known when it was noticed.
func Gap(now time.Time) Row { return gapWith("null", now) }

func gapRow(sh key.Shard, from, to key.FeedPlace, now time.Time) Row {
	text := func(at key.FeedPlace) string { return time.UnixMilli(at.Time()).UTC().Format(statemachine.TimeLayout) }
	return gapWith(fmt.Sprintf(`{"shard":%d,"after":%q,"until":%q}`, sh, text(from), text(to)), now)
}

func gapWith(about string, now time.Time) Row {
	return Row{At: now.UTC(), Text: fmt.Appendf(nil, `{"workflowId":"","instanceId":"","sequence":0,"event":%q,"data":%s,"user":%q,"ts":%q,"states":[]}`,
		GapEvent, about, statemachine.System, now.UTC().Format(statemachine.TimeLayout))}
}
