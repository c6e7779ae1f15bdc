// Package audit keeps who did what: rows that are only ever appended, in the shard Meta, each with the hash of the one
// before. DESIGN.md has the decisions, gateway/INTERFACE.md, "The audit log", what is shown.
//
// The caller who does something that the list of actions names calls Record after it is done and before it is answered:
//
//	if err := log.Record(ctx, user, audit.TokenRevoke, id); err != nil {
//		return err // it is done; whether it is in the log is not known
//	}
//
// A row has ids, and never data of a workflow.
package audit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"troupe/actors/failure"
	"troupe/actors/guard"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Options configures a Log. Store is required.
type Options struct {
	Store *persistence.Store
	// Current returns when everything in Meta that was acknowledged anywhere before is visible here. Nil: the store is
	// standalone.
	Current func(ctx context.Context) error
	// Lead has Here called where Meta is led. Nil: here.
	Lead  func(ctx context.Context, e Entry) error
	Clock func() time.Time // nil is time.Now
	Log   zerolog.Logger
}

// Entry is what a row is made of.
type Entry struct {
	Actor  string `json:"actor"`
	Action Action `json:"action"`
	Target string `json:"target"`
	Count  uint64 `json:"count,omitempty"`
	// At is when it was done; zero: now. A row has no time before that of the row in front of it.
	At time.Time `json:"at,omitzero"`
	// Once has no second row written within the hour.
	Once bool `json:"once,omitempty"`
}

// Log is the audit log. Its methods are safe for concurrent use. Nil has no rows and records nothing.
type Log struct {
	o    Options
	turn chan struct{} // has room for the one who appends
	// Of who has the turn: the newest row, as it was read or appended in an epoch; 0: none was read yet.
	epoch  uint64
	number uint64
	head   *Row

	late     late
	refusals refusals
	reads    reads

	stopping context.Context // done when Stop was called
	stop     context.CancelFunc
	running  sync.WaitGroup
}

// Start returns the log of a store.
func Start(o Options) *Log {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	l := &Log{o: o, turn: make(chan struct{}, 1)}
	l.stopping, l.stop = context.WithCancel(context.Background())
	l.refusals = refusals{queue: make(chan Entry, refusalsQueued), limits: map[Action]*rate.Limiter{}, folded: map[Action]uint64{}}
	l.reads.at, l.late.turn = map[Entry]time.Time{}, make(chan struct{}, 1)
	l.running.Go(func() { guard.Loop(l.stopping.Done(), o.Log, "late rows of the audit log", l.writeInBackground) })
	return l
}

// Stop writes what waits, as far as the store takes it, and returns when that is durable, or ctx ends. Record goes on working.
func (l *Log) Stop(ctx context.Context) error {
	l.stop()
	done := make(chan struct{})
	go func() {
		l.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the audit log: %w", ctx.Err())
	}
}

// recordMax is how long a row may take. It does not depend on the caller: who hangs up is recorded all the same.
const recordMax = 10 * time.Second

// lastMax is how long Stop writes what waits.
const lastMax = 2 * time.Second

// Record appends a row and returns when it is durable. An error says that this is not known, and is of the kind
// failure.ErrOutcomeUnknown: what was done is done, and a row that could not be written is written later.
func (l *Log) Record(ctx context.Context, actor string, action Action, target string) error {
	if l == nil {
		return nil
	}
	at := l.o.Clock()
	err := l.Announce(ctx, actor, action, target)
	if l.isMissing(err) {
		l.later(Entry{Actor: actor, Action: action, Target: target, At: at})
	}
	return err
}

// Announce is Record in front of what is done. With an error there may be no row, and nothing is to be done.
func (l *Log) Announce(ctx context.Context, actor string, action Action, target string) error {
	if l == nil {
		return nil
	}
	return l.announce(ctx, Entry{Actor: actor, Action: action, Target: target})
}

func (l *Log) announce(ctx context.Context, e Entry) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordMax)
	defer cancel()
	if err := l.write(ctx, e); err != nil {
		return failure.Errorf(failure.ErrOutcomeUnknown, "record %s in the audit log: %w", e.Action, err)
	}
	return nil
}

func (l *Log) record(ctx context.Context, e Entry) error {
	if l.o.Lead != nil {
		return l.o.Lead(ctx, e)
	}
	return l.Here(ctx, e)
}

// Here appends a row where Meta is led, and returns when it is durable; elsewhere it returns failure.ErrNotLeader.
func (l *Log) Here(ctx context.Context, e Entry) error {
	now := l.o.Clock()
	if e.Once && l.reads.has(e, now) {
		return nil
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return failure.OfStore(ctx.Err())
	}
	durable := make(outcome, 1)
	err := l.append(e, durable)
	<-l.turn
	if err != nil {
		return failure.OfStore(err)
	}
	select {
	case err = <-durable:
	case <-ctx.Done():
		err = persistence.ErrOutcomeUnknown
	}
	if err == nil && e.Once {
		l.reads.put(e, now)
	}
	return failure.OfStore(err)
}

type outcome chan error

func (o outcome) Committed(err error) { o <- err }

// append does not wait for the disk, except for the first row of an epoch.
func (l *Log) append(e Entry, durable outcome) error {
	store := l.o.Store
	epoch := store.Epoch(key.Meta)
	if epoch == 0 {
		return failure.Elsewhere(uint16(key.Meta))
	}
	if l.epoch != epoch {
		if err := l.readHead(epoch); err != nil {
			return err
		}
	}
	at := l.o.Clock()
	if !e.At.IsZero() && e.At.Before(at) {
		at = e.At
	}
	next := &Row{TS: max(at.UTC().Format(statemachine.TimeLayout), l.head.TS), Actor: clean(e.Actor), Action: e.Action, Target: clean(e.Target), Count: e.Count, Prev: l.head.Hash}
	next.Hash = next.Sum()
	w := store.NewBatchIn(key.Meta, epoch)
	w.Set(key.Audit(nil, l.number+1), next.append(nil))
	if store.Append(w, durable) { // NB: else nothing was applied, and the waiter has the reason
		l.number, l.head = l.number+1, next
	}
	return nil
}

func (l *Log) readHead(epoch uint64) error {
	l.epoch = 0
	if err := l.o.Store.AwaitVisibleIn(key.Meta, epoch); err != nil {
		return err
	}
	snapshot := l.o.Store.Snapshot()
	number, head, err := last(snapshot)
	if err = errors.Join(err, snapshot.Close()); err != nil {
		return err
	}
	if head == nil {
		l.o.Log.Error().Uint64("row", number).Msg("the newest row of the audit log cannot be read; the log goes on behind it")
		head = &Row{Hash: Genesis}
	}
	l.epoch, l.number, l.head = epoch, number, head
	return nil
}

// last returns the newest row and its number: nil when it cannot be read, 0 when there is none.
func last(snapshot *persistence.Snapshot) (number uint64, r *Row, err error) {
	prefix := key.AuditPrefix(nil)
	c := snapshot.Backward(prefix, key.PrefixEnd(prefix))
	defer func() { err = errors.Join(err, c.Close()) }()
	if !c.Next() {
		return 0, &Row{Hash: Genesis}, c.Err()
	}
	parts, _ := key.Parse(c.Key())
	r, _ = parseRow(c.Value())
	return parts.Number, r, nil
}
