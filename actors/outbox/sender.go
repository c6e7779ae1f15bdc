package outbox

import (
	"context"
	"errors"
	"time"

	"troupe/actors/failure"
	"troupe/actors/guard"
	"troupe/actors/internal/wait"
	"troupe/persistence"
	"troupe/persistence/key"
)

// sender is the goroutine of a shard: it alone decides what is tried when, so that the deliveries of one instance and
// queue come one after the other.
type sender struct {
	service *Service
	shard   *shard

	streams map[streamName]*stream // nil: not read yet
	results chan result
	ctx     context.Context //nolint:containedctx // of what this run has begun
}

// stream is read in the order of the times of attempts.
type stream struct {
	name streamName
	from []byte           // the place of the row that comes next
	next int64            // the time of the earliest attempt behind it, as far as known
	busy map[key.ID]*work // instances with something under way
}

type work struct {
	cancel context.CancelFunc
	asked  []*ask // come next
}

type result struct {
	stream *stream
	of     key.ID
	err    error // nothing was written
}

func (s *sender) run() {
	var end context.CancelFunc
	s.ctx, end = context.WithCancel(s.shard.ctx)
	s.results = make(chan result, window)
	defer s.end()
	defer end()
	for s.shard.ctx.Err() == nil {
		if s.streams == nil {
			if err := s.findStreams(); err != nil {
				s.streams = nil
				s.service.o.Log.Error().Err(err).Uint16("shard", uint16(s.shard.number)).Msg("the outbox cannot be read")
				s.wait(s.service.o.Clock().Add(againAfter).UnixMilli())
				continue
			}
		}
		s.wait(s.read())
	}
	s.shard.attempts.Wait()
}

// end answers people whose wish nobody carries out any more. After a panic what is under way is not waited for: its writes may be
// refused, and are tried again.
func (s *sender) end() {
	for _, st := range s.streams {
		for _, w := range st.busy {
			s.refuse(w.asked)
		}
	}
	if s.shard.ctx.Err() == nil { // the next run takes what was asked meanwhile
		return
	}
	s.shard.mu.Lock()
	s.shard.over = true
	s.shard.mu.Unlock()
	s.refuse(s.shard.takeAsked())
}

func (s *sender) refuse(asked []*ask) {
	for _, a := range asked {
		a.done <- s.service.ended(s.shard)
	}
}

// ended is the answer to anyone who wants something of an epoch that is over, or of a service that stops.
func (s *Service) ended(x *shard) error {
	if s.o.Store.Epoch(x.number) == x.epoch {
		return failure.ErrUnavailable
	}
	return failure.Elsewhere(uint16(x.number))
}

func (s *sender) findStreams() error {
	s.streams = map[streamName]*stream{}
	var from []byte
	prefix := key.StreamsPrefix(nil, s.shard.number)
	for {
		var found streamName
		err := s.service.o.Store.ScanRanges(func(k, _ []byte) error {
			workflow, _, _, d, ok := key.ParseAttempt(k)
			if !ok {
				return persistence.ErrCorrupt
			}
			found = streamName{workflow, d.Queue}
			return errEnough
		}, key.Range{Prefix: prefix, From: from})
		if err == nil {
			return nil
		}
		if !errors.Is(err, errEnough) {
			return err
		}
		s.stream(found).next = 0
		from = key.PrefixEnd(key.StreamPrefix(nil, s.shard.number, found.workflow, found.queue))[len(prefix):]
	}
}

func (s *sender) stream(name streamName) *stream {
	st := s.streams[name]
	if st == nil {
		st = &stream{name: name, next: wait.Never, busy: map[key.ID]*work{}}
		s.streams[name] = st
	}
	return st
}

func (s *sender) read() (next int64) {
	s.shard.mu.Lock()
	begun := s.shard.begun
	s.shard.begun = map[streamName]int64{}
	s.shard.mu.Unlock()
	for name, at := range begun {
		st := s.stream(name)
		if len(st.from) > 0 && at <= key.PlaceTime(st.from) {
			st.from = key.TimePlace(at)
		}
		st.next = min(st.next, at)
	}
	for _, a := range s.shard.takeAsked() {
		if st := s.stream(a.stream()); st.busy[a.key.ID] != nil {
			st.busy[a.key.ID].asked = append(st.busy[a.key.ID].asked, a)
			st.busy[a.key.ID].cancel() // NB: an attempt that waits for its host may wait long; it is made again
		} else {
			s.handle(st, a, nil)
		}
	}
	now, next := s.service.o.Clock(), int64(wait.Never)
	held := s.service.o.Held()
	for _, st := range s.streams {
		if held && !isInside(st.name.queue) {
			continue
		}
		if st.next <= now.UnixMilli() && len(st.busy) < window {
			if err := s.fill(st, now); err != nil {
				s.service.o.Log.Error().Err(err).Str("workflow", st.name.workflow).Str("queue", st.name.queue).Msg("the outbox cannot be read")
				st.next = now.Add(againAfter).UnixMilli()
			}
		}
		if len(st.busy) < window {
			next = min(next, st.next)
		}
	}
	return next
}

func (s *sender) fill(st *stream, now time.Time) error {
	var due []key.Delivery
	st.next = wait.Never
	err := s.service.o.Store.ScanRanges(func(k, _ []byte) error {
		_, place, when, d, ok := key.ParseAttempt(k)
		switch {
		case !ok:
			return persistence.ErrCorrupt
		case when > now.UnixMilli():
			st.next = when
			return errEnough
		case len(due) == window:
			st.next = 0
			return errEnough
		}
		st.from = append(append(st.from[:0], place...), 0) // behind it
		if st.busy[d.ID] == nil {
			due = append(due, d)
		}
		return nil
	}, key.Range{Prefix: key.StreamPrefix(nil, s.shard.number, st.name.workflow, st.name.queue), From: st.from})
	if errors.Is(err, errEnough) {
		err = nil
	}
	for _, d := range due {
		if st.busy[d.ID] == nil {
			err = errors.Join(err, s.tryFirst(st, d.ID, now)) // NB: others do not wait behind what cannot be read
		}
	}
	if err != nil {
		st.from = nil // what could not be read is looked for again
	}
	return err
}

// What follows the first delivery waits: its row in the stream was read and is not read again, but it is found here when the
// first is done.
func (s *sender) tryFirst(st *stream, id key.ID, now time.Time) error {
	var first key.Delivery
	var row *Delivery
	err := s.service.o.Store.ScanRanges(func(k, value []byte) error {
		d, ok := key.ParseDelivery(k)
		if !ok {
			return persistence.ErrCorrupt
		}
		parsed, err := Parse(value)
		if err != nil {
			return err
		}
		if parsed.State == Pending {
			first, row = d, parsed
			return errEnough
		}
		return nil
	}, key.Range{Prefix: key.DeliveryQueuePrefix(nil, s.shard.number, id, st.name.queue)})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if row == nil || row.Next.After(now) {
		return nil
	}
	s.start(st, id, nil, func(ctx context.Context) error {
		return s.service.try(ctx, s.shard.number, s.shard.epoch, first, row)
	})
	return nil
}

func (s *sender) handle(st *stream, a *ask, others []*ask) {
	s.start(st, a.key.ID, others, func(context.Context) error {
		var said error = failure.ErrInternal // NB: of a panic, too
		defer func() { a.done <- said }()
		said = s.service.change(s.shard.number, s.shard.epoch, a)
		if errors.Is(said, failure.ErrNotFound) { // another person was faster
			return nil
		}
		return said
	})
}

func (s *sender) start(st *stream, id key.ID, asked []*ask, do func(context.Context) error) {
	ctx, cancel := context.WithCancel(s.ctx)
	st.busy[id] = &work{cancel, asked}
	all, results := s.ctx, s.results
	s.shard.attempts.Go(func() {
		defer cancel()
		var err error
		if panicked := guard.Try(s.service.o.Log, "attempt of a delivery", func() { err = do(ctx) }); panicked != nil {
			err = panicked
		}
		select {
		case results <- result{st, id, err}:
		case <-all.Done():
		}
	})
}

func (s *sender) wait(next int64) {
	at, stop := wait.Until(next, s.service.o.Clock)
	defer stop()
	select {
	case <-s.shard.wake:
	case <-at:
	case <-s.shard.ctx.Done():
	case r := <-s.results:
		s.done(r)
		for {
			select {
			case r := <-s.results:
				s.done(r)
				continue
			default:
			}
			return
		}
	}
}

func (s *sender) done(r result) {
	asked := r.stream.busy[r.of].asked
	delete(r.stream.busy, r.of)
	now := s.service.o.Clock()
	if len(asked) > 0 {
		s.handle(r.stream, asked[0], asked[1:])
		return
	}
	if r.err != nil { // it is found again by its row
		r.stream.from, r.stream.next = nil, now.Add(againAfter).UnixMilli()
		return
	}
	if s.service.o.Held() && !isInside(r.stream.name.queue) { // a person has dropped or retried one
		r.stream.from, r.stream.next = nil, now.UnixMilli()
		return
	}
	if err := s.tryFirst(r.stream, r.of, now); err != nil {
		s.service.o.Log.Error().Err(err).Msg("the outbox cannot be read")
	}
	r.stream.next = min(r.stream.next, now.UnixMilli()) // there is room now, and what was tried may have a row behind the place
}
