package incident

import (
	"context"
	"errors"
	"slices"

	"troupe/actors/failure"
	"troupe/persistence"
)

// goneMax is how many names of deleted instances a node remembers: a failure of one that is still on its way comes
// within seconds.
const goneMax = 4096

// gone has the names of instances that were deleted last.
type gone struct {
	names []string
	next  int
}

func (g *gone) add(name string) {
	if len(g.names) < goneMax {
		g.names = append(g.names, name)
		return
	}
	g.names[g.next] = name
	g.next = (g.next + 1) % goneMax
}

// Forget takes all that instances have left in incidents out of all shards, and returns when that is durable. The
// instances are about to be deleted. Their failures stay counted where they failed.
func (s *Service) Forget(ctx context.Context, instances ...string) error {
	rows := make([]Row, len(instances))
	for k, name := range instances {
		rows[k] = Row{Kind: erased, Instance: name}
	}
	for sh := range s.writing {
		err := s.Put(ctx, uint16(sh), rows) //nolint:gosec // shards are few
		if errors.Is(err, failure.ErrNotLeader) && s.o.Elsewhere != nil {
			err = s.o.Elsewhere(ctx, uint16(sh), rows) //nolint:gosec // likewise
		}
		if err != nil { // NB: another node's shard is not where the instance is
			return failure.Errorf(failure.ErrUnavailable, "incidents of shard %d: %w", sh, err)
		}
	}
	return nil
}

// erase takes an instance out of the incidents of a shard, and notes it, for those that come later.
func (s *Service) erase(w *persistence.Batch, there []kept, of *Row) {
	s.mu.Lock()
	if !slices.Contains(s.gone.names, of.Instance) {
		s.gone.add(of.Instance)
	}
	s.mu.Unlock()
	for k := range there {
		r := there[k].Row
		switch {
		case r.Instance != of.Instance:
		case r.Place == of.Instance: // a loop or a tree: there is nothing but the instance
			w.Delete(there[k].key)
		default:
			r.strip()
			w.Set(there[k].key, r.Stored())
		}
	}
}

// without is a failure without what an instance has left in it that was deleted.
func (s *Service) without(r *Row) *Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Instance == "" || !slices.Contains(s.gone.names, r.Instance) {
		return r
	}
	bare := *r
	bare.strip()
	return &bare
}

// strip leaves where it failed and how often.
func (r *Row) strip() {
	r.Instance, r.Read, r.User = "", nil, ""
	r.Error = "it failed for an instance that was deleted since"
}
