package inventory

import (
	"regexp"
	"time"

	"troupe/actors/internal/history"
	"troupe/actors/internal/instanceid"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Replay counts the instances whose data was compared with what their history gives, and those whose history does not have all that their
// data came from: data of a creation, timers, children, what was too long to keep, or what a definition reads of users.
type Replay struct {
	Replayed    int64 `json:"replayed"`
	NotReplayed int64 `json:"notReplayed"`
}

// unkept is what expressions can read and a history does not keep: all of a user but the id, and the id of an event.
var unkept = regexp.MustCompile(`\buser\b(?:\.id\b)?|\bevent\s*\.\s*id\b`)

// replayable reports whether the history of an instance may have all that its data came from.
func (s *shardCheck) replayable(in *known) bool {
	d := in.definition
	if d == nil || in.child {
		return false
	}
	can, known := s.replays[d]
	if !known {
		can = d.Replayable()
		text, refs, err := s.Catalog.Content(string(d.ID), d.Version)
		can = can && err == nil && readsKept(text)
		for _, ref := range refs {
			can = can && readsKept(ref)
		}
		s.replays[d] = can
	}
	return can
}

func readsKept(text string) bool {
	for _, found := range unkept.FindAllString(text, -1) {
		if found != "user.id" {
			return false
		}
	}
	return true
}

// replay goes through a history once more. A nil one knows nothing.
type replay struct {
	of      *statemachine.Definition
	id      key.ID
	in      statemachine.Instance
	unknown bool // something was not kept
}

func (r *replay) next(e *history.Stored) {
	if r == nil || r.unknown {
		return
	}
	user, _ := e.Entry.Lookup("user")
	event, _ := e.Entry.Lookup("transitionEvent")
	end, _ := e.Entry.Lookup("endState")
	ts, _ := e.Entry.Lookup("ts")
	at, err := time.Parse(time.RFC3339, ts.Text())
	caller := &statemachine.Caller{ID: user.Text()}
	var result statemachine.Result
	kept := !e.Digest && user.Text() != statemachine.System
	switch {
	case err != nil || !kept:
	case r.in.ID == "":
		result, err = r.of.Create(statemachine.Creation{ID: instanceid.Text(r.id), Caller: caller, Now: at, Past: true})
	default:
		result, kept, err = r.of.Replay(&r.in, statemachine.Event{Name: statemachine.EventName(event.Text()), Data: data.Value(e.Brought), Caller: caller, Now: at})
	}
	// NB: that it came elsewhere says that something decided which is not kept; positions are compared with the entries.
	if r.unknown = err != nil || !kept || string(statemachine.AppendNodes(nil, result.Instance.Ends())) != string(end); !r.unknown {
		r.in = result.Instance
	}
}

// data is what the history gives; known is false when it does not say.
func (r *replay) data() (public, private data.Value, known bool) {
	if r == nil || r.unknown {
		return nil, nil, false
	}
	return r.in.Public, r.in.Private, true
}
