package incident

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/actors/guard"
	"troupe/actors/internal/instanceid"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

const (
	// waitingMax is how many incidents wait to be written. Others are lost meanwhile; the log has them.
	waitingMax = 1024
	rowsMax    = 256 // how many a shard has
	// pause is the least time between two writes of an incident, putMax bounds the wait for one commit, endMax the one
	// at the stop.
	pause  = time.Second
	putMax = 2 * time.Second
	endMax = 2 * putMax
)

// Options configures a Service.
type Options struct {
	Store *persistence.Store
	Log   zerolog.Logger
	// Elsewhere has the node that leads a shard put rows there (Service.Put). Nil: the store stands alone.
	Elsewhere func(ctx context.Context, shard uint16, rows []Row) error
}

// Service counts failures and writes them down.
type Service struct {
	o       Options
	ctx     context.Context //nolint:containedctx // of its goroutine
	cancel  context.CancelFunc
	running sync.WaitGroup
	wake    chan struct{} // has room for one

	mu      sync.Mutex
	waiting map[key.ID]*Row
	// writing has for each shard who changes its rows, from reading them on until it is known whether that is durable.
	writing []chan struct{}
}

// New returns a service that notes, and writes from Start on.
func New(o Options) *Service {
	s := &Service{o: o, wake: make(chan struct{}, 1), waiting: map[key.ID]*Row{}}
	for range o.Store.Shards() {
		s.writing = append(s.writing, make(chan struct{}, 1))
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Start begins.
func (s *Service) Start() {
	s.running.Go(func() { guard.Loop(s.ctx.Done(), s.o.Log, "writing of incidents", s.run) })
}

// Stop writes what waits, as far as that can be done within endMax, and ends.
func (s *Service) Stop() {
	s.cancel()
	s.running.Wait()
}

// Note counts a failure, which is written soon. r.First, Last and Count are of this one. The reference is how the
// incident's id begins, on all nodes and as long as the place fails.
func (s *Service) Note(r *Row) (reference string) {
	r.bound()
	name := r.name()
	s.add(name, r)
	return instanceid.Text(name)
}

// Undone notes and logs a step that failed for whoever asked for it, and returns the error for them.
func (s *Service) Undone(f *statemachine.Fault, r *Row) error {
	if r.Event == "" { // it was not created
		r.Instance = ""
	}
	r.Last = r.Last.UTC()
	r.Kind, r.First, r.Count = Expression, r.Last, 1
	r.Error, r.File, r.Line, r.Expression, r.Read = f.Message, f.File, f.Line, f.Expression, f.Read
	reference := s.Note(r)
	logged(s.o.Log.Warn(), f).Str("workflow", r.Workflow).Uint64("version", r.Version).Str("instance", r.Instance).Str("event", r.Event).
		Str("incident", reference).Msg("event undone by an execution error")
	return &failure.Error{Kind: failure.ErrExecution, Reference: reference, Cause: placed{reference, f}}
}

// LogFailed says in the log of events that came by themselves that they have failed: of the timers that the instance
// keeps them as now. Without an error none has.
func (s *Service) LogFailed(of *statemachine.Definition, workflow string, instance key.ID, err error, begun []statemachine.Timer) {
	for _, t := range begun {
		if err == nil || !t.Failed {
			continue
		}
		line := s.o.Log.Warn()
		if f := of.FaultOf(err); f != nil {
			line = logged(line, f)
		} else {
			line = line.Err(err)
		}
		line.Str("workflow", workflow).Str("instance", instanceid.Text(instance)).Str("event", string(t.Event)).
			Str("incident", instanceid.PartText(instance, t.ID.Sequence, t.ID.Number)).Msg("an event that came by itself has failed; it is an incident")
	}
}

// NB: why may quote data of the instance, which is for those who may read it: the incident has that.
func logged(line *zerolog.Event, f *statemachine.Fault) *zerolog.Event {
	return line.Str("file", f.File).Int("line", f.Line).Str("expression", f.Expression)
}

type placed struct {
	incident string
	fault    *statemachine.Fault
}

func (p placed) Error() string {
	return fmt.Sprintf("%v, incident %s", statemachine.ErrExecution, p.incident)
}

func (placed) Unwrap() error { return statemachine.ErrExecution }

// Why is for those who may see what it quotes.
func (p placed) Why() string { return p.fault.Error() }

func (s *Service) add(name key.ID, r *Row) {
	s.mu.Lock()
	if before := s.waiting[name]; before != nil {
		before.merge(r)
	} else if len(s.waiting) < waitingMax {
		s.waiting[name] = r
	}
	s.mu.Unlock()
	s.begin()
}

func (s *Service) begin() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Service) run() {
	for {
		select {
		case <-s.wake:
		case <-s.ctx.Done():
			ctx, cancel := context.WithTimeout(context.Background(), endMax)
			defer cancel()
			s.flush(ctx)
			return
		}
		s.flush(s.ctx)
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
		}
	}
}

func (s *Service) flush(ctx context.Context) {
	s.mu.Lock()
	waiting := s.waiting
	s.waiting = map[key.ID]*Row{}
	s.mu.Unlock()
	of := map[key.Shard][]Row{}
	for name, r := range waiting {
		sh := s.o.Store.ShardOf(name)
		of[sh] = append(of[sh], *r)
	}
	for sh, rows := range of {
		err := s.Put(ctx, uint16(sh), rows)
		if errors.Is(err, failure.ErrElsewhere) && s.o.Elsewhere != nil {
			err = s.o.Elsewhere(ctx, uint16(sh), rows)
		}
		if err == nil {
			continue
		}
		s.o.Log.Warn().Err(err).Int("incidents", len(rows)).Msg("incidents cannot be written now")
		for k := range rows {
			s.add(rows[k].name(), &rows[k])
		}
	}
}

// Put adds failures to the incidents of a shard that is led here, else failure.ErrElsewhere. It returns when they are
// durable.
func (s *Service) Put(ctx context.Context, shard uint16, rows []Row) error {
	return s.change(ctx, key.Shard(shard), func(w *persistence.Writes, sh key.Shard) error {
		there, err := s.load(sh)
		for k := range rows {
			if err == nil {
				there, err = put(w, sh, there, &rows[k])
			}
		}
		return err
	})
}

type kept struct {
	key []byte
	*Row
	unreadable bool
}

func (s *Service) load(sh key.Shard) (out []kept, err error) {
	err = s.o.Store.Scan(append(key.IncidentPrefix(nil, sh), mark), func(key, stored []byte) error {
		r, err := Parse(stored)
		if err != nil { // it can be dropped, and the next failure at its place takes it
			r = &Row{}
		}
		out = append(out, kept{bytes.Clone(key), r, err != nil})
		return nil
	})
	return out, failure.OfStore(err)
}

func put(w *persistence.Writes, sh key.Shard, there []kept, r *Row) ([]kept, error) {
	r.bound()
	name := r.name()
	at := slices.IndexFunc(there, func(k kept) bool {
		return bytes.HasPrefix(k.key, append(key.IncidentPrefix(nil, sh), name[:]...))
	})
	if at < 0 {
		if len(there) >= rowsMax {
			least := outlived(there)
			w.Delete(there[least].key)
			there = slices.Delete(there, least, least+1)
		}
		// NB: one that was dropped and comes again has another id.
		key := key.Incident(nil, sh, name, uint64(r.First.UnixMilli()), rand.Uint32()) //nolint:gosec // no secret
		at, there = len(there), append(there, kept{key: key, Row: r})
	} else if there[at].unreadable {
		there[at] = kept{key: there[at].key, Row: r}
	} else {
		there[at].merge(r)
	}
	stored, err := there[at].stored()
	if err == nil {
		w.Set(there[at].key, stored)
	}
	return there, err
}

// outlived is that which has not failed for the longest time, of the workflow that has most.
func outlived(there []kept) (least int) {
	count := map[string]int{}
	for _, k := range there {
		count[k.Workflow]++
	}
	for at, k := range there {
		by := count[k.Workflow] - count[there[least].Workflow]
		if by > 0 || by == 0 && k.Last.Before(there[least].Last) {
			least = at
		}
	}
	return least
}

// Change drops an incident whose shard is led here: failure.ErrNotFound, and failure.ErrElsewhere.
func (s *Service) Change(ctx context.Context, id string, kind Kind, drop bool) error {
	if !drop {
		return kind.retry()
	}
	name, sequence, number, ok := instanceid.ParsePart(id)
	if !ok {
		return failure.ErrNotFound
	}
	return s.change(ctx, s.o.Store.ShardOf(name), func(w *persistence.Writes, sh key.Shard) error {
		key := key.Incident(nil, sh, name, sequence, number)
		if _, err := s.o.Store.Load(key); errors.Is(err, persistence.ErrNotFound) {
			return failure.ErrNotFound
		} else if err != nil {
			return failure.OfStore(err)
		}
		w.Delete(key)
		return nil
	})
}

// All that was written before is visible to fill.
func (s *Service) change(ctx context.Context, sh key.Shard, fill func(*persistence.Writes, key.Shard) error) error {
	epoch := s.o.Store.Epoch(sh)
	if epoch == 0 {
		return failure.Elsewhere(uint16(sh))
	}
	ctx, cancel := context.WithTimeout(ctx, putMax)
	defer cancel()
	done := committed{s.writing[sh], make(chan error, 1)}
	select {
	case done.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	w := s.o.Store.NewWritesIn(sh, epoch)
	err := s.o.Store.AwaitVisibleIn(sh, epoch)
	if err == nil {
		err = fill(w, sh)
	}
	if err != nil {
		w.Discard()
		<-done.writing
		return failure.OfStore(err)
	}
	s.o.Store.Append(w, done)
	select {
	case err = <-done.outcome:
	case <-ctx.Done(): // NB: it may still be written, and then counts twice
		err = ctx.Err()
	}
	return failure.OfStore(err)
}

type committed struct {
	writing chan struct{}
	outcome chan error
}

// Committed implements persistence.Waiter.
func (c committed) Committed(err error) {
	<-c.writing
	c.outcome <- err
}
