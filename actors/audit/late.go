package audit

import (
	"context"
	"errors"
	"sync"
	"time"

	"troupe/persistence"
)

const (
	// lateMax bounds the rows that wait on a node until the store takes writes. Of what is beyond there is one row for
	// each action, with the target "*" and their number.
	lateMax   = 1000
	lateEvery = time.Second // between two tries to write them
)

// late are rows of what was done, which could not be written.
type late struct {
	turn chan struct{} // has room for the one who writes them

	mu   sync.Mutex
	rows []Entry // guarded by mu; the oldest first
}

// Later has a row written when the store takes writes again, in front of the rows of what happens from now on. A crash
// meanwhile loses it, so the log of the program has it at once.
func (l *Log) Later(actor string, action Action, target string) {
	if l != nil {
		l.later(Entry{Actor: actor, Action: action, Target: target, At: l.o.Clock()})
	}
}

func (l *Log) later(e Entry) {
	l.o.Log.Error().Str("actor", e.Actor).Str("action", string(e.Action)).Str("target", e.Target).Msg("the audit log does not tell of this yet: its row cannot be written now")
	l.late.mu.Lock()
	defer l.late.mu.Unlock()
	if len(l.late.rows) < lateMax {
		l.late.rows = append(l.late.rows, e)
		return
	}
	l.fold(e)
}

// isMissing reports whether a row may be missing for good after an error. NB: in a cluster a leader who did not answer
// may have written it, and then it is there twice: rather that than not at all.
func (l *Log) isMissing(err error) bool {
	return err != nil && (l.o.Lead != nil || !errors.Is(err, persistence.ErrOutcomeUnknown))
}

// write appends a row behind those that wait.
func (l *Log) write(ctx context.Context, e Entry) error {
	if err := l.writeLate(ctx); err != nil {
		return err
	}
	return l.record(ctx, e)
}

// writeLate writes the rows that wait. With an error some still do.
func (l *Log) writeLate(ctx context.Context) error {
	for {
		if _, waits := l.late.oldest(); !waits {
			return nil
		}
		select {
		case l.late.turn <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		var err error
		if e, waits := l.late.oldest(); waits { // NB: somebody else may have had the turn meanwhile
			if err = l.record(ctx, e); !l.isMissing(err) {
				l.late.removeOldest()
			}
		}
		<-l.late.turn
		if err != nil {
			return err
		}
	}
}

func (w *late) oldest() (e Entry, waits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rows) == 0 {
		return e, false
	}
	return w.rows[0], true
}

func (w *late) removeOldest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows = w.rows[1:]
}
