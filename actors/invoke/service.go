package invoke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/actors/child"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/incident"
	"troupe/actors/internal/instanceid"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Options says how a Service works. All but Elsewhere must be set.
type Options struct {
	Store   *persistence.Store
	Catalog *catalog.Catalog
	Clock   func() time.Time
	Log     zerolog.Logger
	// Principal returns a user with the rights of now, or why there is none.
	Principal func(identity.UserID) (*identity.Principal, error)
	// Current returns when this node has everything that any node acknowledged before the call.
	Current func(context.Context) error
	// Elsewhere has the node that leads a shard carry out a message (Service.Join). Nil: the store stands alone.
	Elsewhere func(ctx context.Context, shard uint16, m *child.Message) (refused string, err error)
	Note      func(*incident.Row) (reference string) // Note keeps an incident
	// TreeMax is how many instances of a tree run.
	TreeMax int
}

// Service asks. Its methods are safe for concurrent use.
type Service struct {
	o Options

	mu    sync.Mutex
	trees map[key.ID]*tree     // by root; guarded by mu
	swept time.Time            // guarded by mu
	roots map[key.ID]child.Ref // of parents that are not roots; guarded by mu
}

// New returns a service.
func New(o Options) *Service {
	return &Service{o: o, trees: map[key.ID]*tree{}, roots: map[key.ID]child.Ref{}}
}

// Sender is what the actor of a parent knows, or that of a child that sends its parent an event.
type Sender struct {
	Wants   bool // the child of a start still runs for it
	Version uint64
	Parent  *statemachine.Parent // its own; nil: it is a root
}

// Prepare asks, where the sender is led, all that its side knows, before a start or an event goes to a child, or an
// event to the parent. It notes in m.Start under which rules the child may be created, and why its tree takes no more.
// failure.ErrForbidden: it may not send the other one events.
func (s *Service) Prepare(ctx context.Context, m *child.Message, sender *Sender) error {
	free, by, err := s.o.Catalog.MayInvoke(m.From.Workflow, sender.Version, m.To().Workflow, s.find)
	if err != nil {
		return err
	}
	if m.Start == nil {
		if free {
			return nil
		}
		return failure.Refuse(failure.ErrForbidden, "workflow %s may not send events to instances of workflow %s", m.From.Workflow, m.To().Workflow)
	}
	if !free {
		m.Start.Bound, m.Start.For = true, by.ID
	}
	m.Start.Full, err = s.askRoot(ctx, m, sender)
	return err
}

// May asks, where a child is about to be created, what Prepare has found, and the rules of the child's workflow where
// they bind.
func (s *Service) May(m *child.Message, of statemachine.Creation) error {
	if m.Start.Full != "" {
		return failure.Refuse(failure.ErrForbidden, "%s", m.Start.Full)
	}
	if !m.Start.Bound {
		return nil
	}
	by := &statemachine.Caller{}
	if p := s.find(identity.UserID(m.Start.For)); p != nil {
		by = catalog.CallerOf(p)
	}
	of.ID, of.Now = m.Start.Child, s.o.Clock()
	newest, err := s.o.Catalog.Creatable(m.Start.To)
	if err == nil {
		err = newest.MayInvoke(by, of)
	}
	if err == nil && m.Start.Version != 0 && m.Start.Version != newest.Version { // NB: an older version is no way around
		var d *statemachine.Definition
		if d, err = s.o.Catalog.Find(m.Start.To, m.Start.Version); err == nil {
			err = d.MayInvoke(by, of)
		}
	}
	for _, refused := range []error{statemachine.ErrMayNotCreate, statemachine.ErrNotSettable, statemachine.ErrInvalidData} {
		if errors.Is(err, refused) {
			return failure.Refuse(failure.ErrForbidden, "workflow %s may not invoke it with this data: %w", m.From.Workflow, err)
		}
	}
	return err
}

func (s *Service) askRoot(ctx context.Context, m *child.Message, parent *Sender) (refused string, err error) {
	join := child.Message{From: m.From, Part: m.Part, Join: &child.Join{Root: m.From, Child: m.Start.Child}}
	if parent.Parent != nil {
		if join.Join.Root, err = s.rootOf(ctx, parent.Parent); err != nil {
			return "", err
		}
	}
	refused, err = s.Join(ctx, join.Join)
	if !errors.Is(err, failure.ErrElsewhere) || s.o.Elsewhere == nil {
		return refused, err
	}
	return s.o.Elsewhere(ctx, failure.Of(err).Shard, &join)
}

const rootsMax = 4096

// Who has invoked whom never changes, so any replica will do that has the records.
func (s *Service) rootOf(ctx context.Context, p *statemachine.Parent) (child.Ref, error) {
	at := child.Ref{Workflow: p.Workflow, Instance: p.Instance}
	first, ok := instanceid.Parse(at.Instance)
	if !ok || p.Depth <= 1 { // only the root stands above the child
		return at, nil
	}
	s.mu.Lock()
	root, known := s.roots[first]
	s.mu.Unlock()
	if known {
		return root, nil
	}
	for depth := p.Depth; depth > 1; depth-- {
		above, err := s.look(at)
		if errors.Is(err, failure.ErrNotFound) { // it may not have come here yet
			if err = s.o.Current(ctx); err == nil {
				above, err = s.look(at)
			}
		}
		switch {
		case errors.Is(err, failure.ErrNotFound), errors.Is(err, failure.ErrExecution):
			// NB: not found: what is below ends. One that cannot be read is the root until it is repaired.
			return at, nil
		case err != nil:
			return child.Ref{}, err
		}
		if above.parent == nil {
			break
		}
		at = child.Ref{Workflow: above.parent.Workflow, Instance: above.parent.Instance}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.roots) >= rootsMax {
		clear(s.roots)
	}
	s.roots[first] = at
	return at, nil
}

type relative struct {
	version  uint64
	runs     bool
	parent   *statemachine.Parent
	children []child.Ref // those that run, as far as it knows
}

// look reads an instance as this node has it, without waking it.
func (s *Service) look(at child.Ref) (relative, error) {
	id, ok := instanceid.Parse(at.Instance)
	if !ok {
		return relative{}, failure.ErrNotFound
	}
	stored, err := s.o.Store.Load(key.Record(nil, s.o.Store.ShardOf(id), at.Workflow, id))
	if errors.Is(err, persistence.ErrNotFound) {
		return relative{}, failure.ErrNotFound
	}
	if err != nil {
		return relative{}, failure.OfStore(err)
	}
	record, err := statemachine.ParseRecord(stored)
	var of *statemachine.Definition
	var state statemachine.Instance
	if err == nil {
		if of, err = s.o.Catalog.Version(at.Workflow, record.Version); err == nil {
			state, err = of.Restore(at.Instance, record)
		}
	}
	if err != nil {
		return relative{}, failure.Errorf(failure.ErrExecution, "%w", err)
	}
	r := relative{version: of.Version, runs: !of.IsOver(&state), parent: state.Parent()}
	for _, c := range state.Children() {
		if c.Status == statemachine.ChildRuns {
			r.children = append(r.children, child.Ref{Workflow: c.Workflow, Instance: instanceid.Text(child.ID(id, c.ID, c.Begun))})
		}
	}
	return r, nil
}

func (s *Service) find(user identity.UserID) *identity.Principal {
	p, err := s.o.Principal(user)
	if err != nil {
		return nil
	}
	return p
}

// IsRefusal reports whether an error says that a child can never be created.
func IsRefusal(err error) bool {
	kind := failure.Of(err).Kind
	return err != nil && slices.Contains([]failure.Kind{
		failure.ErrInvalid, failure.ErrForbidden, failure.ErrNotFound, failure.ErrTooLarge, failure.ErrExecution,
	}, kind)
}

// full is why a tree takes no more.
func (s *Service) full() string {
	return fmt.Sprintf("%d instances of its tree run, which is the limit (treeInstancesMax)", s.o.TreeMax)
}
