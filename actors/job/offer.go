package job

import (
	"errors"

	"troupe/actors/failure"
	"troupe/actors/internal/wait"
	"troupe/actors/job/line"
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
	s.kindLocked(o.Type).lines.Insert(x.number, o)
	s.ringLocked(o.Type)
}

// withdrawLocked takes a job out of its line.
func (s *Service) withdrawLocked(x *shard, o *key.Offer) {
	if k := s.types[o.Type]; k != nil {
		k.lines.Withdraw(x.number, o)
	}
}

func (s *Service) adoptLocked(x *shard, of *line.Shard) {
	for typ, lines := range of.ByType {
		s.kindLocked(typ).lines.Adopt(x.number, lines)
		s.ringLocked(typ)
	}
}

// fill reads offers of a line in a shard. NB: who calls it has the turn, so that no other read goes on.
func (s *Service) fill(x *shard, k *kind, o *key.Offer) error {
	s.mu.Lock()
	h := k.lines.Head(x.number, o)
	last, ok := key.Offer{}, false
	if h != nil {
		last, ok = h.BeginRead()
	}
	s.mu.Unlock()
	if !ok {
		return nil
	}
	prefix := key.OfferPrefix(nil, x.number, o.Type, o.Priority, o.Workflow)
	of := key.Range{Prefix: prefix, From: append(last.Key(nil, x.number)[len(prefix):], 0)}
	var read []key.Offer
	err := s.rows.ScanRanges(func(rowKey, _ []byte) error {
		if len(read) == line.AheadMax {
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
	if k.lines.Head(x.number, o) != h || x.over {
		return nil
	}
	h.EndRead(read, err == nil, func(name key.Job) bool { return x.taken[name] != nil })
	if err != nil && !errors.Is(err, errEnough) {
		return failure.OfStore(err)
	}
	k.lines.Prune(x.number, o)
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
