package job

import (
	"errors"

	"troupe/actors/failure"
	"troupe/actors/internal/wait"
	"troupe/persistence"
	"troupe/persistence/key"
)

func (s *Service) kindLocked(typ string) *kind {
	k := s.types[typ]
	if k == nil {
		k = newKind()
		s.types[typ] = k
	}
	return k
}

// offerLocked puts a job into its line, and tells who waits for it.
func (s *Service) offerLocked(x *shard, o key.Offer) {
	if x.over {
		return
	}
	s.kindLocked(o.Type).makeHead(x.number, &o).insert(o)
	s.ringLocked(o.Type)
}

// withdrawLocked takes a job out of its line.
func (s *Service) withdrawLocked(x *shard, o *key.Offer) {
	k := s.types[o.Type]
	if k == nil {
		return
	}
	if h := k.headOf(x.number, o); h != nil {
		h.withdraw(o)
		k.prune(x.number, o)
	}
}

func (s *Service) adoptLocked(x *shard, l lines) {
	for typ, of := range l {
		k := s.kindLocked(typ)
		for name, h := range of {
			o := key.Offer{Priority: name.priority, Workflow: name.workflow}
			*k.makeHead(x.number, &o) = *h
			k.prune(x.number, &o)
		}
		s.ringLocked(typ)
	}
}

// fill reads offers of a line in a shard. NB: who calls it has the turn, so that no other read goes on.
func (s *Service) fill(x *shard, k *kind, o *key.Offer) error {
	s.mu.Lock()
	h := k.headOf(x.number, o)
	if h == nil || !h.more || len(h.next) > 0 {
		s.mu.Unlock()
		return nil
	}
	last := h.last
	h.reads = true
	s.mu.Unlock()
	prefix := key.OfferPrefix(nil, x.number, o.Type, o.Priority, o.Workflow)
	of := key.Range{Prefix: prefix, From: append(last.Key(nil, x.number)[len(prefix):], 0)}
	var read []key.Offer
	err := s.rows.ScanRanges(func(rowKey, _ []byte) error {
		if len(read) == aheadMax {
			return errEnough
		}
		o, ok := key.ParseOffer(rowKey)
		if !ok {
			return persistence.ErrCorrupt
		}
		read = append(read, o)
		return nil
	}, of)
	s.mu.Lock()
	defer s.mu.Unlock()
	h.reads = false
	came := h.came
	h.came = nil
	if k.headOf(x.number, o) != h || x.over {
		return nil
	}
	if err != nil && !errors.Is(err, errEnough) {
		return failure.OfStore(err)
	}
	if len(read) > 0 {
		h.last = read[len(read)-1]
	}
	for i := range read {
		if x.taken[read[i].Job] == nil { // NB: what was taken out of the middle of the line may be visible still
			h.next = append(h.next, read[i])
		}
	}
	if err == nil {
		h.more, h.count = false, int64(len(h.next))
	}
	for i := range came {
		if x.taken[came[i].Job] == nil {
			h.count-- // it was counted when it came
			h.insert(came[i])
		}
	}
	if !h.more {
		h.count = int64(len(h.next))
	}
	k.prune(x.number, o)
	return nil
}

// ringLocked tells who waits for jobs of a type to look, on all nodes.
func (s *Service) ringLocked(typ string) {
	s.wakeLocked(typ)
	s.rings.Ring(typ)
}

func (s *Service) wakeLocked(typ string) {
	if k := s.types[typ]; k != nil {
		for w := range k.waiters {
			wait.Notify(w.rung)
		}
	}
}
