package job

import (
	"slices"
)

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
			c.Waiting += l.Count()
			c.sawOldest(l.Front())
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
