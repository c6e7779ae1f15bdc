// Package presentation shows workflows and instances as people see them: titles, columns and labels, the way that an
// instance came, and how many stand where.
//
// It keeps nothing, and has no goroutine of its own. Texts are in all languages of the definition: anyone who answers a
// reader chooses.
package presentation

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/internal/history"
	"troupe/actors/internal/instanceid"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/task"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Instances has the instances.
type Instances interface {
	View(req *message.Load, f func(message.View)) error
}

// Options has what a Service shows. All but Clock must be set.
type Options struct {
	Instances Instances
	Queries   *query.Service
	Catalog   *catalog.Catalog
	Store     *persistence.Store
	Clock     func() time.Time // Clock tells the time, for rights that depend on it; nil: time.Now
}

// Service answers any number of goroutines.
type Service struct{ o Options }

// New returns a service.
func New(o Options) *Service {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Service{o}
}

// Line is an instance as people see it in a list. It is only read.
type Line struct {
	Of     *statemachine.Definition // the definition that the instance runs under
	Title  statemachine.Text        // no text when the definition has none or it fails
	At     []statemachine.Position
	Values []data.Value // those of the columns of Of, absent where the instance has none
}

// Called is its title, or else the name of its workflow.
func (l *Line) Called() statemachine.Text {
	if l.Title.For() != "" {
		return l.Title
	}
	return statemachine.Plain(l.Of.Name)
}

func lineOf(of *statemachine.Definition, in *statemachine.Instance) Line {
	l := Line{Of: of, Title: of.Title(in), At: of.Positions(in)}
	columns := of.Columns
	for k := range columns {
		l.Values = append(l.Values, columns[k].Value(in.Public))
	}
	return l
}

func (l *Line) cloneValues() (size int) {
	if l == nil {
		return 0
	}
	for k, v := range l.Values {
		l.Values[k] = slices.Clone(v)
		size += len(v)
	}
	return size
}

// Name names an instance.
type Name struct{ WorkflowID, InstanceID string }

const linesBytesMax = 4 << 20

// Lines returns some instances as people see them, in their order: nil for those that the caller may not read, that are
// gone, or that cannot be read. It wakes none of them, and costs a read each. When what their columns have would take
// more than about 4 MiB, it returns the first of them, at least one.
func (s *Service) Lines(ctx context.Context, p *identity.Principal, of []Name) ([]*Line, error) {
	lines := make([]*Line, 0, len(of))
	if len(of) == 0 {
		return lines, nil
	}
	caller, now := catalog.CallerOf(p), s.o.Clock()
	names := make([]query.Name, len(of))
	for k, n := range of {
		names[k].Workflow = n.WorkflowID
		names[k].ID, _ = instanceid.Parse(n.InstanceID) // NB: there is none without an id
	}
	err := s.o.Queries.ReadInstances(ctx, p.ID, names, func(r query.Loader) error {
		for size := 0; len(lines) < len(of) && size < linesBytesMax; {
			l, err := s.line(r, caller, now, of[len(lines)])
			if err != nil {
				return err
			}
			size += l.cloneValues()
			lines = append(lines, l)
		}
		return nil
	})
	if err != nil {
		return nil, failure.In("list", "instances as people see them", err)
	}
	return lines, nil
}

// Called returns what an instance is called: its title, or the name of its workflow; no text where Lines has nothing.
// It costs a read.
func (s *Service) Called(r query.Loader, p *identity.Principal, of Name) (statemachine.Text, error) {
	l, err := s.line(r, catalog.CallerOf(p), s.o.Clock(), of)
	if l == nil || err != nil {
		return nil, err
	}
	return l.Called(), nil
}

func (s *Service) line(r query.Loader, c *statemachine.Caller, now time.Time, of Name) (*Line, error) {
	id, ok := instanceid.Parse(of.InstanceID)
	if !ok {
		return nil, nil
	}
	if r, ok := r.(*query.Reader); ok {
		if err := r.Step(); err != nil {
			return nil, err
		}
	}
	in, err := query.LoadInstance(r, s.o.Catalog, s.o.Store.ShardOf(id), of.WorkflowID, id)
	var rules *statemachine.Definition
	if err == nil {
		rules, err = s.o.Catalog.Newest(of.WorkflowID)
	}
	switch {
	case errors.Is(err, failure.ErrNotFound), errors.Is(err, failure.ErrExecution):
		return nil, nil
	case err != nil:
		return nil, err
	case !rules.MayRead(statemachine.View{Instance: &in.State, Of: in.Of}, c, now):
		return nil, nil
	}
	l := lineOf(in.Of, &in.State)
	return &l, nil
}

// Summary is an instance as people see it. It is only read.
type Summary struct {
	Line
	Sequence         uint64
	Created, Updated time.Time
	Requester        string // the user who created the instance
	// IsDone: all its state machines have reached a final node. IsEnded: it was stopped, or its parent has cancelled
	// it.
	IsDone, IsEnded bool
	Form            *form.Form   // nil when the instance is none
	Tasks           []*task.Item // all that wait, also those that somebody else has or is a candidate for
}

// Summary returns an instance as people see it. The errors are those of workflow.Router.Load.
func (s *Service) Summary(ctx context.Context, req *message.Load) (*Summary, error) {
	out := &Summary{}
	var id key.ID
	rules, err := s.o.Catalog.Newest(req.WorkflowID)
	if err == nil {
		err = s.o.Instances.View(req, func(v message.View) {
			in := v.Instance
			id, out.Line, out.Sequence, out.Form = v.ID, lineOf(v.Of, in), in.Sequence, v.Form
			out.Created, out.Updated, out.IsDone, out.IsEnded = in.CreatedAt, in.UpdatedAt, v.Of.IsDone(in), in.IsEnded()
			whole := task.Whole{Workflow: req.WorkflowID, Of: v.Of, Rules: rules, State: in}
			caller, now := catalog.CallerOf(req.Caller), s.o.Clock()
			for _, t := range in.Tasks() {
				out.Tasks = append(out.Tasks, whole.ItemOf(&t, caller, now, ""))
			}
		})
	}
	if err == nil {
		out.Requester, err = task.LoadRequester(s.o.Store, s.o.Store.ShardOf(id), id)
	}
	for _, t := range out.Tasks {
		t.Requester = out.Requester
	}
	if err != nil {
		return nil, failure.In("summary of", req.WorkflowID+"/"+req.InstanceID, err)
	}
	return out, nil
}

type entry struct {
	User  string                 `json:"user"`
	Event statemachine.EventName `json:"transitionEvent"`
	Start []statemachine.NodeID  `json:"startState"`
	End   []statemachine.NodeID  `json:"endState"`
	Data  json.RawMessage        `json:"data"` // of those that were read with data
}

func (s *Service) entries(id key.ID, seen, last uint64, withData bool) (out []entry, err error) {
	joined, _, err := history.Page(s.o.Store, s.o.Store.ShardOf(id), id, seen+1, last, withData)
	if err != nil {
		return nil, failure.OfStore(err)
	}
	if err := json.Unmarshal(append(append([]byte{'['}, joined...), ']'), &out); err != nil {
		return nil, failure.OfStore(persistence.ErrCorrupt)
	}
	return out, nil
}

// Trace is where an instance stands and the way that it came. It is only read.
type Trace struct {
	Of       *statemachine.Definition
	Sequence uint64
	At       []statemachine.Position
	Steps    []Step // the entries of its history, page by page from the end, as far as they were read
}

// Step is an entry of a history.
type Step struct {
	Event      statemachine.EventName // empty for the creation
	Start, End []statemachine.NodeID
}

// How much of a history is read for the way that an instance came.
const (
	traceEntriesMax = 5_000
	tracePage       = 250
	traceNodesMax   = 200_000
)

// Trace returns where an instance stands and the way that it came: of a long history the newest part. Unless at is 0, it
// is where the instance stood after that entry, which its history says, whatever else was kept. The errors are those of
// workflow.Router.Load, and failure.ErrNotFound when there is no such entry.
func (s *Service) Trace(ctx context.Context, req *message.Load, at uint64) (*Trace, error) {
	out := &Trace{}
	var id key.ID
	err := s.o.Instances.View(req, func(v message.View) {
		id, out.Of, out.Sequence, out.At = v.ID, v.Of, v.Instance.Sequence, v.Of.Positions(v.Instance)
	})
	if err == nil && at > 0 {
		err = s.goBack(out, id, req.WorkflowID, at)
	}
	nodes := 0
	for last := out.Sequence; err == nil && last > 0 && len(out.Steps) < traceEntriesMax && nodes < traceNodesMax; {
		seen := last - min(last, tracePage)
		var page []entry
		page, err = s.entries(id, seen, last, false)
		if last == at && len(page) > 0 {
			out.At = out.Of.PositionsNamed(page[len(page)-1].End)
		}
		for _, e := range page {
			out.Steps = append(out.Steps, Step{Event: e.Event, Start: e.Start, End: e.End})
			nodes += len(e.Start) + len(e.End)
		}
		last = seen
	}
	if err != nil {
		return nil, failure.In("way of", req.WorkflowID+"/"+req.InstanceID, err)
	}
	return out, nil
}

// goBack makes the trace one as after entry at: with the definition of then, as the entries up to it say, or the next migration.
func (s *Service) goBack(out *Trace, id key.ID, workflowID string, at uint64) error {
	if at > out.Sequence {
		return failure.ErrNotFound
	}
	last := min(out.Sequence, at+traceEntriesMax)
	out.Sequence = at
	version, err := history.NewReader(s.o.Store, s.o.Store.ShardOf(id), id).VersionAt(at, traceEntriesMax)
	if err != nil {
		return failure.OfStore(err)
	}
	if version != 0 {
		if then, err := s.o.Catalog.Find(workflowID, version); err == nil { // NB: it may be retired
			out.Of = then
		}
		return nil
	}
	for seen := at; seen < last; seen += tracePage {
		page, err := s.entries(id, seen, min(last, seen+tracePage), true)
		if err != nil {
			return err
		}
		for _, e := range page {
			var moved struct{ From, To uint64 }
			if e.Event != statemachine.MigrateEvent || json.Unmarshal(e.Data, &moved) != nil || moved.From == moved.To {
				continue
			}
			if then, err := s.o.Catalog.Find(workflowID, moved.From); err == nil { // NB: it may be retired
				out.Of = then
			}
			return nil
		}
	}
	return nil
}

// Presented returns a version of a workflow's definition, 0 being the newest, for who may read or create its instances
// and for holders of mod-workflows: failure.ErrNotFound, ErrForbidden, or ErrExecution when it cannot be read. The
// rights are those of the newest version.
func (s *Service) Presented(p *identity.Principal, workflowID string, version uint64) (*statemachine.Definition, error) {
	d, err := s.presented(p, workflowID, version)
	return d, failure.In("presentation of", workflowID, err)
}

func (s *Service) presented(p *identity.Principal, workflowID string, version uint64) (*statemachine.Definition, error) {
	newest, err := s.o.Catalog.Newest(workflowID)
	if err != nil {
		return nil, err
	}
	caller, now := catalog.CallerOf(p), s.o.Clock()
	if _, mayCreate := s.o.Catalog.Choice(workflowID, caller, now); !mayCreate && newest.ReadRight(caller, now) == statemachine.Denied && !p.Has(identity.Workflows) {
		return nil, failure.ErrForbidden
	}
	if version == 0 {
		return newest, nil
	}
	return s.o.Catalog.Find(workflowID, version)
}

// Standing counts how many instances stand where, as query.Service says.
func (s *Service) Standing(ctx context.Context, p *identity.Principal, workflowID string, at []statemachine.Position) ([]query.Standing, error) {
	return s.o.Queries.Standing(ctx, p, workflowID, at)
}
