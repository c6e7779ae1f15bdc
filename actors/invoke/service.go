// Package invoke asks, before a child is created, whether its parent may have it: by the rules of both workflows, and
// by how many instances of their tree run. A tree is an instance that nobody has invoked, its root, with all that it,
// and they, have invoked. The count is not stored: who runs is what the records of the tree say, so nothing can get
// lost or counted twice; the node that leads the root remembers who was let in since it has read them (DESIGN.md).
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
	"troupe/actors/internal/breaks"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
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
	// Read is query.Service.ReadInstances, of no user; it may be of the store.
	Read func(ctx context.Context, of []query.Name, read func(query.Loader) error) error
	// Elsewhere has the node that leads a shard carry out a message (Service.Join). Nil: the store is standalone.
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
	of.Now = s.o.Clock()
	return May(m, of, s.find, func(workflow string, version uint64) (*statemachine.Definition, error) {
		if version == 0 {
			return s.o.Catalog.Creatable(workflow)
		}
		return s.o.Catalog.Find(workflow, version)
	})
}

// May is Service.May at the time of the creation. find returns a user with the rights of now, nil for none, and definition a version of a
// workflow; 0 is the newest, if instances may be created.
func May(m *child.Message, of statemachine.Creation, find func(identity.UserID) *identity.Principal, definition func(string, uint64) (*statemachine.Definition, error)) error {
	if m.Start.Full != "" {
		return failure.Refuse(failure.ErrForbidden, "%s", m.Start.Full)
	}
	if !m.Start.Bound {
		return nil
	}
	by := &statemachine.Caller{}
	if p := find(identity.UserID(m.Start.For)); p != nil {
		by = catalog.CallerOf(p)
	}
	of.ID = m.Start.Child
	newest, err := definition(m.Start.To, 0)
	if err == nil {
		err = newest.MayInvoke(by, of)
	}
	if err == nil && m.Start.Version != 0 && m.Start.Version != newest.Version { // NB: an older version is not a way around
		var d *statemachine.Definition
		if d, err = definition(m.Start.To, m.Start.Version); err == nil {
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
	if !errors.Is(err, failure.ErrNotLeader) || s.o.Elsewhere == nil {
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
		above, err := s.read(at)
		if errors.Is(err, failure.ErrNotFound) { // it may not have come here yet, or never come
			if failed := s.readEach(ctx, []child.Ref{at}, func(_ child.Ref, r relative, notRead error) error {
				above, err = r, notRead
				return nil
			}); failed != nil {
				err = failed
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

// read returns an instance as this node has it, without waking it.
func (s *Service) read(at child.Ref) (relative, error) { return s.readFrom(s.o.Store, at) }

// readEach calls visit with each of some instances, wherever they are: with the error of one that cannot be read.
func (s *Service) readEach(ctx context.Context, of []child.Ref, visit func(child.Ref, relative, error) error) error {
	names := make([]query.Name, len(of))
	for i, at := range of {
		names[i].Workflow = at.Workflow
		names[i].ID, _ = instanceid.Parse(at.Instance) // NB: there is none without an id
	}
	return s.o.Read(ctx, names, func(from query.Loader) error {
		for _, at := range of {
			r, err := s.readFrom(from, at)
			if err := visit(at, r, err); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Service) readFrom(from query.Loader, at child.Ref) (relative, error) {
	id, ok := instanceid.Parse(at.Instance)
	if !ok {
		return relative{}, failure.ErrNotFound
	}
	in, err := query.LoadInstance(from, s.o.Catalog, s.o.Store.ShardOf(id), at.Workflow, id)
	if err != nil {
		return relative{}, err
	}
	r := relative{version: in.Of.Version, runs: !in.Of.IsOver(&in.State), parent: in.State.Parent()}
	for _, c := range in.State.Children() {
		if c.Status == statemachine.ChildRuns {
			r.children = append(r.children, child.Ref{Workflow: c.Workflow, Instance: instanceid.Text(child.ID(id, c.ID, c.Begun))})
		}
	}
	return r, nil
}

// IsAwaited reports whether a parent, wherever it is, waits for a child.
func (s *Service) IsAwaited(ctx context.Context, p *statemachine.Parent, of child.Ref) (yes bool, err error) {
	parent := child.Ref{Workflow: p.Workflow, Instance: p.Instance}
	failed := s.readEach(ctx, []child.Ref{parent}, func(_ child.Ref, above relative, notRead error) error {
		yes, err = above.runs && slices.Contains(above.children, of), notRead
		return nil
	})
	if errors.Is(err, failure.ErrNotFound) {
		err = nil
	}
	return yes, errors.Join(failed, err)
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

// pause is how long a tree that was found full counts as full, and how long one is remembered in which nothing happens.
const pause = 10 * time.Second

// countRest is how many times as long as a piece of counting the break behind it is: the processors are there for
// people.
const countRest = 8

type tree struct {
	turn    chan struct{}       // has room for one, who asks or counts; the rest is theirs, or nobody's while none is asked
	epoch   uint64              // of the shard of the root; 0: it was not counted yet
	version uint64              // of the root
	ended   bool                // the root
	running map[key.ID]struct{} // the instances that were found, the root among them, and those that were let in since
	counted time.Time
	begun   int // how many were let in since
	full    bool

	used  time.Time // guarded by Service.mu
	asked int       // by how many, those who wait among them; guarded by Service.mu
}

// Join lets a child into the tree of a root that is led here, else failure.ErrNotLeader. It may be asked again and
// again. refused says why the tree takes no more.
func (s *Service) Join(ctx context.Context, m *child.Join) (refused string, err error) {
	root, isRoot := instanceid.Parse(m.Root.Instance)
	id, isID := instanceid.Parse(m.Child)
	if !isRoot || !isID {
		return "", failure.ErrInvalid
	}
	sh := s.o.Store.ShardOf(root)
	epoch := s.o.Store.Epoch(sh)
	if epoch == 0 {
		return "", failure.Elsewhere(uint16(sh))
	}
	now := s.o.Clock()
	t := s.tree(root, now)
	defer s.leave(t)
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if t.epoch != epoch { // NB: somebody else has let in others meanwhile
		t.epoch, t.running = 0, nil
		if err := s.count(ctx, t, m); err != nil {
			return "", err
		}
		t.epoch = epoch
	}
	if _, known := t.running[id]; known {
		return "", nil
	}
	if len(t.running) >= s.o.TreeMax || t.ended {
		switch rested := now.Sub(t.counted) >= pause; {
		case t.full && !rested:
			return s.refuse(t, m, now), nil
		case !rested && t.begun < s.o.TreeMax/10: // NB: so a child costs ten looks at most
			return "", failure.ErrBusy
		}
		if err := s.count(ctx, t, m); err != nil {
			return "", err
		}
		if t.full {
			return s.refuse(t, m, now), nil
		}
	}
	t.running[id] = struct{}{}
	t.begun++
	return "", nil
}

// A tree whose root has ended is not an incident: what is left of it ends, too.
func (s *Service) refuse(t *tree, m *child.Join, now time.Time) string {
	if t.ended {
		return "the root of its tree has ended"
	}
	s.o.Note(&incident.Row{
		Kind: incident.Tree, Workflow: m.Root.Workflow, Version: t.version, Place: m.Root.Instance, Instance: m.Root.Instance, Event: "error.invoke",
		Error: "the instance and what it has invoked may not invoke more: " + s.full(), First: now, Last: now, Count: 1,
	})
	return s.full()
}

// countAhead is how many instances of a tree are read at a time.
const countAhead = 64

// Anyone who was let in and is not there yet counts as long as its parent waits for it. One that cannot be read counts,
// and what it may have invoked does not.
func (s *Service) count(ctx context.Context, t *tree, m *child.Join) error {
	at, err := s.read(m.Root)
	if err != nil && !errors.Is(err, failure.ErrNotFound) && !errors.Is(err, failure.ErrExecution) {
		return err
	}
	root, _ := instanceid.Parse(m.Root.Instance)
	running := map[key.ID]struct{}{root: {}}
	t.version, t.ended = at.version, err == nil && !at.runs || errors.Is(err, failure.ErrNotFound)
	if t.ended {
		at.children = nil
	}
	pauses := breaks.New(0, countRest, 1)
	todo := at.children
	visit := func(next child.Ref, at relative, err error) error {
		if pauses.Take(ctx.Done()); ctx.Err() != nil {
			return ctx.Err()
		}
		id, _ := instanceid.Parse(next.Instance)
		switch {
		case errors.Is(err, failure.ErrNotFound):
			_, at.runs = t.running[id]
		case errors.Is(err, failure.ErrExecution):
			at.runs = true
			s.o.Log.Error().Err(err).Str("workflow", next.Workflow).Str("instance", next.Instance).Msg("an instance of a tree cannot be read")
		case err != nil:
			return err
		}
		if at.runs {
			running[id] = struct{}{}
			todo = append(todo, at.children...)
		}
		return nil
	}
	for len(todo) > 0 && len(running) < s.o.TreeMax {
		n := len(todo) - min(len(todo), countAhead, s.o.TreeMax-len(running))
		some := slices.Clone(todo[n:])
		todo = todo[:n]
		if len(some) == 1 && some[0].Instance == m.Child && len(todo) == 0 { // NB: a tree that begins asks no other node
			at, err := s.read(some[0])
			if err := visit(some[0], at, err); err != nil {
				return err
			}
			continue
		}
		if err := s.readEach(ctx, some, visit); err != nil {
			return err
		}
		pauses.Begin() // that was a wait
	}
	t.running, t.counted, t.begun = running, s.o.Clock(), 0
	t.full = t.ended || len(running) >= s.o.TreeMax
	return nil
}

// tree returns the tree of a root until leave is called, and forgets, once in a while, those in which nothing happens.
func (s *Service) tree(root key.ID, now time.Time) *tree {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.swept) >= pause {
		s.swept = now
		for id, t := range s.trees {
			if id != root && t.isIdle(now) {
				delete(s.trees, id)
			}
		}
	}
	t := s.trees[root]
	if t == nil {
		t = &tree{turn: make(chan struct{}, 1)}
		s.trees[root] = t
	}
	t.used = now
	t.asked++
	return t
}

func (s *Service) leave(t *tree) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.asked--
}

// NB: Service.mu is held.
func (t *tree) isIdle(now time.Time) bool {
	return t.asked == 0 && now.Sub(t.used) >= pause+time.Duration(len(t.running))*time.Second
}
