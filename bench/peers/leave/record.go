package leave

import (
	"encoding/json"
	"errors"
	"time"
)

// Record is the state of an instance, as a peer keeps it. Its history is not in it.
type Record struct {
	Public  json.RawMessage `json:"svcPublic"`
	Private json.RawMessage `json:"svcPrivate"` // the data of the last event
	Node    string          `json:"node"`
	Entries int             `json:"entries"` // of the history; the next one has this number
}

// Entry is what one event leaves in the history.
type Entry struct {
	Event string    `json:"transitionEvent"`
	From  string    `json:"startState"`
	To    string    `json:"endState"`
	At    time.Time `json:"ts"`
}

// Event is what is sent to an instance. At is when it came in: a peer that executes a
// step anew finds the same time again.
type Event struct {
	Name string          `json:"name"`
	Data json.RawMessage `json:"data"`
	At   time.Time       `json:"at"`
}

// Start is the node of a new instance.
const Start = "draft"

// Why an event cannot be applied.
var (
	ErrNotFound = errors.New("no such instance")
	ErrRefused  = errors.New("the event is not possible here")
)

// daysMax is how many days may be asked for.
const daysMax = 30

// Move returns the nodes that an event leads from and to.
func (e *Event) Move() (from, to string, err error) {
	switch e.Name {
	case "submit":
		var data struct {
			Days int `json:"days"`
		}
		if err := json.Unmarshal(e.Data, &data); err != nil {
			return "", "", ErrRefused
		}
		if data.Days > daysMax {
			return Start, "refused", nil
		}
		return Start, "review", nil
	case "return":
		return "review", Start, nil
	case "approve":
		return "review", "approved", nil
	}
	return "", "", ErrRefused
}

// New returns the record of a new instance, and the first entry of its history.
func New(public json.RawMessage, at time.Time) (Record, Entry) {
	return Record{Public: public, Private: json.RawMessage("{}"), Node: Start, Entries: 1}, Entry{To: Start, At: at}
}

// Apply moves the record on and returns the entry of its history.
func (r *Record) Apply(e Event) (Entry, error) {
	from, to, err := e.Move()
	if err != nil || from != r.Node {
		return Entry{}, ErrRefused
	}
	r.Node, r.Private = to, e.Data
	r.Entries++
	return Entry{e.Name, from, to, e.At}, nil
}
