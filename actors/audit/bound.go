package audit

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"troupe/actors/failure"
	"troupe/actors/identity"
)

// Refusals cost their callers nothing, so their rows are bounded: for each action refusalsAtOnce on a node, and then one
// a minute. What is beyond is counted, and told of each minute by one row with the target "*".
const (
	refusalsAtOnce = 100
	refusalsQueued = 128
	refusalsEvery  = time.Minute
)

type refusals struct {
	queue chan Entry

	mu     sync.Mutex
	limits map[Action]*rate.Limiter // guarded by mu
	folded map[Action]uint64        // guarded by mu
}

// Refuse notes that something was refused. It does not wait: a crash can lose the last ones.
func (l *Log) Refuse(actor string, action Action, target string) {
	if l == nil {
		return
	}
	r := &l.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limits[action] == nil {
		r.limits[action] = rate.NewLimiter(rate.Every(refusalsEvery), refusalsAtOnce)
	}
	if r.limits[action].AllowN(l.o.Clock(), 1) {
		select {
		case r.queue <- Entry{Actor: actor, Action: action, Target: target}:
			return
		default:
		}
	}
	r.folded[action]++
}

func (l *Log) writeInBackground() {
	tick, late := time.NewTicker(refusalsEvery), time.NewTicker(lateEvery)
	defer tick.Stop()
	defer late.Stop()
	for {
		select {
		case <-late.C:
			ctx, cancel := context.WithTimeout(context.Background(), recordMax)
			_ = l.writeLate(ctx) // they wait on
			cancel()
		case e := <-l.refusals.queue:
			l.writeRefusal(context.Background(), e)
		case <-tick.C:
			l.writeFolded(context.Background())
		case <-l.stopping.Done():
			ctx, cancel := context.WithTimeout(context.Background(), lastMax)
			defer cancel()
			if err := l.writeLate(ctx); err != nil {
				l.o.Log.Error().Err(err).Msg("the audit log lacks rows that could not be written")
			}
			for len(l.refusals.queue) > 0 {
				l.writeRefusal(ctx, <-l.refusals.queue)
			}
			l.writeFolded(ctx)
			return
		}
	}
}

func (l *Log) writeFolded(ctx context.Context) {
	r := &l.refusals
	r.mu.Lock()
	folded := maps.Clone(r.folded)
	clear(r.folded)
	r.mu.Unlock()
	for action, n := range folded {
		l.writeRefusal(ctx, Entry{Action: action, Target: "*", Count: n})
	}
}

// What cannot be written is told of later.
func (l *Log) writeRefusal(ctx context.Context, e Entry) {
	ctx, cancel := context.WithTimeout(ctx, recordMax)
	defer cancel()
	if err := l.write(ctx, e); err != nil {
		l.o.Log.Debug().Err(err).Msg("a refusal is not in the audit log yet")
		l.fold(e)
	}
}

// fold has a row tell of it together with others.
func (l *Log) fold(e Entry) {
	l.refusals.mu.Lock()
	defer l.refusals.mu.Unlock()
	l.refusals.folded[e.Action] += max(e.Count, 1)
}

// readsFor is the time in which reads of the same by the same reader are one row.
const readsFor = time.Hour

// readsMax bounds those that are remembered.
const readsMax = 10_000

type reads struct {
	mu sync.Mutex
	at map[Entry]time.Time // guarded by mu; when its row was durable
}

func (r *reads) has(e Entry, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.at[e]
	return known && now.Sub(at) < readsFor
}

func (r *reads) put(e Entry, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.at) >= readsMax {
		clear(r.at)
	}
	r.at[e] = now
}

// ReadList is Read of instances of a workflow.
func (l *Log) ReadList(ctx context.Context, operator identity.UserID, workflow string) error {
	return l.Read(ctx, string(operator), InstanceList, workflow)
}

// Read is Announce for looking at something: what was recorded within the hour is not recorded again. With its error,
// failure.ErrUnavailable, nothing is to be shown.
func (l *Log) Read(ctx context.Context, actor string, action Action, target string) error {
	if l == nil {
		return nil
	}
	e, now := Entry{Actor: actor, Action: action, Target: target, Once: true}, l.o.Clock()
	if l.reads.has(e, now) { // NB: the leader of Meta knows of the reads at other nodes too
		return nil
	}
	if err := l.announce(ctx, e); err != nil {
		return failure.Errorf(failure.ErrUnavailable, "%w", err)
	}
	l.reads.put(e, now)
	return nil
}
