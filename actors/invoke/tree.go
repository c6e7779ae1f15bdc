package invoke

import (
	"context"
	"errors"
	"time"

	"troupe/actors/child"
	"troupe/actors/failure"
	"troupe/actors/incident"
	"troupe/actors/internal/breaks"
	"troupe/actors/internal/instanceid"
	"troupe/persistence/key"
)

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

// Join lets a child into the tree of a root that is led here, else failure.ErrElsewhere. It may be asked again and
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

// One whose root has ended is no incident: what is left of it ends, too.
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

// Whoever was let in and is not there yet counts as long as its parent waits for it. One that cannot be read counts,
// and what it may have invoked does not.
func (s *Service) count(ctx context.Context, t *tree, m *child.Join) error {
	at, err := s.look(m.Root)
	if err != nil && !errors.Is(err, failure.ErrNotFound) && !errors.Is(err, failure.ErrExecution) {
		return err
	}
	root, _ := instanceid.Parse(m.Root.Instance)
	running := map[key.ID]struct{}{root: {}}
	t.version, t.ended = at.version, err == nil && !at.runs || errors.Is(err, failure.ErrNotFound)
	if t.ended {
		at.children = nil
	}
	isCurrent := false
	pauses := breaks.New(0, countRest, 1)
	for todo := at.children; len(todo) > 0 && len(running) < s.o.TreeMax; {
		pauses.Take(ctx.Done())
		if err := ctx.Err(); err != nil {
			return err
		}
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !isCurrent && (next.Instance != m.Child || len(todo) > 0) { // NB: a tree that begins asks no other node
			if err := s.o.Current(ctx); err != nil {
				return err
			}
			isCurrent = true
			pauses.Begin() // that was a wait
		}
		id, _ := instanceid.Parse(next.Instance)
		at, err := s.look(next)
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
