// Package incident keeps what failed and is not an event that an instance could take again: a step that failed for anyone who
// sent its event, an instance that sends itself events without end, a tree of instances over its limit. Note counts in
// memory; what waits is written at most once a second, in one commit for each shard, where the shard is led (Put); a
// crash loses the counts of the last second. There is one row for each kind, workflow, version and place: their hash
// names it and chooses its shard. Its id ends with when it came first and a random number, so that one that comes again
// after it was dropped is another one.
package incident

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
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
	"troupe/actors/internal/wait"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// Kind says what failed.
type Kind string

const (
	Event      Kind = ""           // Event came on its own and failed, once; its instance keeps it (package timer)
	Expression Kind = "expression" // a step that failed for anyone who sent its event, or asked for its instance
	// Loop is an instance that sends itself events without end, and Tree the root of a tree of instances over its
	// limit.
	Loop Kind = "loop"
	Tree Kind = "tree"
	// erased takes what is known of Row.Instance, which is about to be deleted, out of the incidents of a shard
	// (Service.Forget).
	erased Kind = "erased"
)

// OfService is the workflow in incidents that are of none, but of the service itself: its background work.
const OfService = "system"

// Row is an incident that no timer keeps: all failures of one kind at one place of one version of a workflow.
type Row struct {
	Kind     Kind   `json:"kind"`
	Workflow string `json:"workflow"`
	Version  uint64 `json:"version"`
	// Place tells it from others of its kind in the version; "": that of the definition's text, and without one the
	// event.
	Place string `json:"place,omitempty"`
	// Instance is the last that failed; "": it was never created. Event is what it failed with; "": its create.
	Instance string `json:"instance,omitempty"`
	Event    string `json:"event,omitempty"`
	Error    string `json:"error"`
	// File, Line, Expression and Read are those of statemachine.Fault, of the last failure.
	File       string      `json:"file,omitempty"`
	Line       int         `json:"line,omitempty"`
	Expression string      `json:"expression,omitempty"`
	Read       []expr.Read `json:"read,omitempty"`
	User       string      `json:"user,omitempty"` // who was last told of it
	First      time.Time   `json:"first"`
	Last       time.Time   `json:"last"`
	Count      uint64      `json:"count"`
}

const (
	rowFormat = 1       // of the stored form: format(1) and JSON
	textMax   = 2 << 10 // textMax bounds Error and Expression, in bytes
	// mark begins the names of rows in keys: it is behind the ids of all instances that are created before the year
	// 10000.
	mark = 0xFF
)

// ErrDamaged: the row of an incident cannot be read.
var ErrDamaged = errors.New("an incident cannot be read")

// Parse reads a stored Row.
func Parse(stored []byte) (*Row, error) {
	r := &Row{}
	if len(stored) == 0 || stored[0] != rowFormat {
		return nil, fmt.Errorf("%w: format", ErrDamaged)
	}
	if err := json.Unmarshal(stored[1:], r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return r, nil
}

// Stored is the stored form, with what is too long in it cut.
func (r *Row) Stored() []byte {
	r.bound()
	text, _ := json.Marshal(r) // NB: texts, numbers and times of the clock cannot fail
	return append([]byte{rowFormat}, text...)
}

func (r *Row) bound() {
	r.Error, r.Expression = data.Clip(r.Error, textMax), data.Clip(r.Expression, textMax)
}

// name is an id only in keys and in what people read: it chooses the shard that has the row.
func (r *Row) name() (id key.ID) {
	place := r.Place
	if place == "" {
		if place = r.File; r.Line == 0 {
			place = r.Event
		}
	}
	h := sha256.New()
	for _, part := range []string{string(r.Kind), r.Workflow, place, r.Expression} {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	h.Write(binary.AppendUvarint(binary.AppendUvarint(nil, r.Version), uint64(r.Line))) //nolint:gosec // not negative
	copy(id[:], h.Sum(nil))
	id[0] = mark
	return id
}

func (r *Row) merge(later *Row) {
	first, count := r.First, r.Count+later.Count
	if later.First.Before(first) {
		first = later.First
	}
	if !later.Last.Before(r.Last) {
		*r = *later
	}
	r.First, r.Count = first, count
}

func (k Kind) retry() error {
	instead := "the sender of the event was told that it failed, and can send it again"
	switch k {
	case Loop:
		instead = "send the instance an event that leads it out, or publish a version without the circle and migrate it"
	case Tree:
		instead = "the instances that invoked more got error.invoke; end instances of the tree, or have treeInstancesMax raised, before they invoke again"
	}
	return failure.Refuse(failure.ErrConflict, "there is nothing to retry: %s", instead)
}

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
	// Elsewhere has the node that leads a shard put rows there (Service.Put). Nil: the store is standalone.
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
	gone    gone // guarded by mu
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

// Undone notes and logs a step that failed for anyone who asked for it, and returns the error for them.
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

// LogFailed says in the log of events that came on their own that they have failed: of the timers that the instance
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
			Str("incident", instanceid.PartText(instance, t.ID.Sequence, t.ID.Number)).Msg("a timer or callback has failed; it is an incident")
	}
}

// NB: why may quote data of the instance, which is for those who can read it: the incident has that.
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

// Why is for those who can see what it quotes.
func (p placed) Why() string { return p.fault.Error() }

func (s *Service) add(name key.ID, r *Row) {
	s.mu.Lock()
	if before := s.waiting[name]; before != nil {
		before.merge(r)
	} else if len(s.waiting) < waitingMax {
		s.waiting[name] = r
	}
	s.mu.Unlock()
	wait.Notify(s.wake)
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
		wait.Sleep(s.ctx, pause)
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
		if errors.Is(err, failure.ErrNotLeader) && s.o.Elsewhere != nil {
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

// Put adds failures to the incidents of a shard that is led here, else failure.ErrNotLeader. It returns when they are
// durable.
func (s *Service) Put(ctx context.Context, shard uint16, rows []Row) error {
	return s.change(ctx, key.Shard(shard), func(w *persistence.Batch, sh key.Shard) error {
		there, err := s.load(sh)
		if err == nil {
			for k := range rows {
				if rows[k].Kind == erased {
					s.erase(w, there, &rows[k])
				} else {
					there = put(w, sh, there, s.without(&rows[k]))
				}
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

func put(w *persistence.Batch, sh key.Shard, there []kept, r *Row) []kept {
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
	w.Set(there[at].key, there[at].Stored())
	return there
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

// Change drops an incident whose shard is led here: failure.ErrNotFound, and failure.ErrNotLeader.
func (s *Service) Change(ctx context.Context, id string, kind Kind, drop bool) error {
	if !drop {
		return kind.retry()
	}
	name, sequence, number, ok := instanceid.ParsePart(id)
	if !ok {
		return failure.ErrNotFound
	}
	return s.change(ctx, s.o.Store.ShardOf(name), func(w *persistence.Batch, sh key.Shard) error {
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
func (s *Service) change(ctx context.Context, sh key.Shard, fill func(*persistence.Batch, key.Shard) error) error {
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
	w := s.o.Store.NewBatchIn(sh, epoch)
	err := s.o.Store.AwaitVisibleIn(sh, epoch)
	if err == nil {
		err = fill(w, sh)
	}
	if err != nil {
		w.Discard()
		<-done.writing
		return failure.OfStore(err)
	}
	if w.Len() == 0 { // nothing was to be forgotten
		w.Discard()
		<-done.writing
		return nil
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

func (c committed) Committed(err error) {
	<-c.writing
	c.outcome <- err
}
