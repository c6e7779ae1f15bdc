package task

import (
	"time"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/internal/history"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// Status says who has a task.
type Status string

// The words of the interface (gateway/INTERFACE.md, "Fields of a task").
const (
	Open  Status = "open"    // nobody
	Taken Status = "claimed" // Assignee
	Done  Status = "done"    // nobody any more
)

// Item is a task as somebody sees it.
type Item struct {
	WorkflowID, InstanceID string
	statemachine.Task
	statemachine.TaskText
	Status      Status
	Candidates  statemachine.Candidates
	Requester   string                    // Requester has created the instance
	Events      []statemachine.Available  // what the reader may send now to bring it on
	EventLabels []statemachine.EventLabel // EventLabels say how people see each of Events
	Decided     *Decided                  // set when somebody has brought it on
	IsCandidate bool                      // the reader may take it over
	// IsBlind: the title is the label of the node, and nothing is known of what the instance holds, nor of its
	// requester.
	IsBlind bool
}

// TaskID is the name of the task.
func (i *Item) TaskID() string { return i.InstanceID + "-" + i.ID.String() }

// Whole is an instance with the definitions that say what is seen of it.
type Whole struct {
	Workflow string
	Of       *statemachine.Definition // its own
	Rules    *statemachine.Definition // the newest
	State    *statemachine.Instance
	Budget   *expr.Budget // that of a View

	asked     asked
	available []statemachine.Available // what asked has to send
}

type asked struct {
	c   *statemachine.Caller
	now time.Time
}

func (w *Whole) view() statemachine.View {
	return statemachine.View{Instance: w.State, Of: w.Of, Budget: w.Budget}
}

// ItemOf is an open task as a caller sees it. It does not ask whether the caller may read the instance.
func (w *Whole) ItemOf(t *statemachine.Task, c *statemachine.Caller, now time.Time, requester string) *Item {
	i := &Item{
		WorkflowID: w.Workflow, InstanceID: w.State.ID, Task: *t, TaskText: w.view().TaskText(t), Status: Open, Candidates: w.Of.Candidates(t.At),
		Requester: requester, IsCandidate: w.IsCandidate(t, c, now),
	}
	if t.Assignee != "" {
		i.Status = Taken
	}
	if by := (asked{c, now}); w.asked != by { // once for all tasks of an instance
		w.asked, w.available = by, nil
		if w.Rules.MaySend(w.view(), c, now) {
			w.available = w.view().Available(c, now)
		}
	}
	if len(w.available) > 0 {
		i.Events = statemachine.TaskEvents(t, w.available)
		for _, e := range i.Events {
			i.EventLabels = append(i.EventLabels, w.Of.EventLabel(e.Name))
		}
	}
	return i
}

// BlindItemOf is an open task as those see it who run the service and may not read the instance.
func (w *Whole) BlindItemOf(t *statemachine.Task) *Item {
	i := &Item{
		WorkflowID: w.Workflow, InstanceID: w.State.ID, Task: *t, TaskText: statemachine.TaskText{Title: w.Of.LabelOf(t.At).Label},
		Status: Open, Candidates: w.Of.Candidates(t.At), IsBlind: true,
	}
	i.Form = ""
	if t.Assignee != "" {
		i.Status = Taken
	}
	return i
}

// MayRead asks whether a caller may see the instance.
func (w *Whole) MayRead(c *statemachine.Caller, now time.Time) bool {
	return w.Rules.MayRead(w.view(), c, now)
}

// IsCandidate asks whether a caller may take over a task of it.
func (w *Whole) IsCandidate(t *statemachine.Task, c *statemachine.Caller, now time.Time) bool {
	return w.view().IsCandidate(t, c, now)
}

// Find returns an open task of the instance; nil when it has none of that name.
func Find(in *statemachine.Instance, id statemachine.ElementID) *statemachine.Task {
	for _, t := range in.Tasks() {
		if t.ID == id {
			return &t
		}
	}
	return nil
}

func loadWhole(from query.Loader, c *catalog.Catalog, sh key.Shard, workflow string, id key.ID) (*Whole, error) {
	in, err := query.LoadInstance(from, c, sh, workflow, id)
	if err != nil {
		return nil, err
	}
	rules, err := c.Newest(workflow)
	if err != nil {
		return nil, err
	}
	return &Whole{Workflow: workflow, Of: in.Of, Rules: rules, State: &in.State}, nil
}

// LoadRequester is the user of an instance's first history entry.
func LoadRequester(from query.Loader, sh key.Shard, id key.ID) (string, error) {
	stored, err := from.Load(key.Entry(nil, sh, id, 1))
	if err != nil {
		return "", failure.OfStore(err)
	}
	entry, err := history.NewReader(from, sh, id).Entry(1, stored)
	user, has := entry.Lookup("user")
	if err != nil || !has || user.Kind() != data.String {
		return "", failure.Errorf(failure.ErrExecution, "the first history entry: %w", persistence.ErrCorrupt)
	}
	return user.Text(), nil
}
