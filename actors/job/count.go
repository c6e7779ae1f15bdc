package job

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"troupe/actors/fanout"
	"troupe/actors/identity"
)

// Metrics are counts since the start.
type Metrics struct {
	Activated, Completed, Failed, Expired int64 // Failed are attempts
}

// Metrics returns the counts as they are now.
func (s *Service) Metrics() Metrics {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Here counts the jobs of the shards that are led here, by type.
func (s *Service) Here() []TypeCount {
	s.mu.Lock()
	defer s.mu.Unlock()
	by := map[string]*TypeCount{}
	of := func(typ string) *TypeCount {
		if by[typ] == nil {
			by[typ] = &TypeCount{Type: typ}
		}
		return by[typ]
	}
	for typ, k := range s.types {
		c := of(typ)
		for _, l := range k.lines {
			for _, h := range l.heads {
				c.Waiting += h.count
			}
			if len(l.heads) > 0 {
				c.sawOldest(l.front())
			}
		}
		now := s.o.Clock().UnixMilli()
		for name, seen := range k.workers {
			if now-seen <= seenFor.Milliseconds() {
				c.Workers = append(c.Workers, name)
			}
		}
		slices.Sort(c.Workers)
	}
	for _, x := range s.led {
		for _, e := range x.taken {
			switch c := of(e.offer.Type); e.State {
			case leased:
				c.Running++
			case waits:
				c.Waiting++
				c.sawOldest(e.offer.Created)
			default:
				c.Failed++
			}
		}
	}
	return sorted(by)
}

func (c *TypeCount) sawOldest(created int64) {
	if at := time.UnixMilli(created).UTC(); c.Oldest.IsZero() || at.Before(c.Oldest) {
		c.Oldest = at
	}
}

func (c *TypeCount) add(of *TypeCount) {
	c.Waiting, c.Running, c.Failed = c.Waiting+of.Waiting, c.Running+of.Running, c.Failed+of.Failed
	if !of.Oldest.IsZero() {
		c.sawOldest(of.Oldest.UnixMilli())
	}
	c.Workers = slices.Compact(slices.Sorted(slices.Values(append(c.Workers, of.Workers...))))
}

func sorted(by map[string]*TypeCount) (out []TypeCount) {
	for _, c := range slices.SortedFunc(maps.Values(by), func(a, b *TypeCount) int { return cmp.Compare(a.Type, b.Type) }) {
		if c.Waiting+c.Running+c.Failed > 0 || len(c.Workers) > 0 {
			out = append(out, *c)
		}
	}
	return out
}

// Types counts the jobs of all types, on all nodes, for users who can list them.
func (s *Service) Types(ctx context.Context, caller *identity.Principal) ([]TypeCount, error) {
	if err := mayList(caller); err != nil {
		return nil, err
	}
	if s.kinds == nil {
		return s.Here(), nil
	}
	by := map[string]*TypeCount{}
	_, err := s.kinds.types.Merge(ctx, &struct{}{}, fanout.Merging[TypeCount]{
		Order: func(a, b TypeCount) int { return cmp.Compare(a.Type, b.Type) }, Ahead: 1,
	}, func(c TypeCount) error {
		if by[c.Type] == nil {
			by[c.Type] = &TypeCount{Type: c.Type}
		}
		by[c.Type].add(&c)
		return nil
	})
	return sorted(by), err
}
