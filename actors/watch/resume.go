package watch

import (
	"errors"

	"troupe/actors/changefeed"
	"troupe/actors/failure"
)

// beatsBetween is how many heartbeats come before one has a new position, so that a silent stream does not come back
// far behind.
const beatsBetween = 20

// chunkMax entries are read from the store before they are shown, chunkRows rows are looked at: no snapshot waits for a
// reader.
const chunkMax, chunkRows = 256, 20_000

// resumeAll goes on with what the feed has kept, if that is all that the caller misses, else with what the store has.
func (w *watcher) resumeAll() error {
	seen, err := changefeed.ParseCursor(w.req.LastEventID, len(w.seen))
	if err != nil {
		return w.lose()
	}
	w.seen = seen
	if place, ok := w.feed.behind(seen); ok {
		w.next = place
		return nil
	}
	return w.catchUpAll()
}

// catchUpAll shows what the store has behind w.seen. What the caller may read is decided as of now, and so is what
// matches a filter: where that cannot be known of an old entry, entries are lost.
func (w *watcher) catchUpAll() error {
	for unknown := false; ; {
		chunk, more, err := w.readChunk()
		if errors.Is(err, changefeed.ErrGone) {
			return w.beginAgain()
		}
		if err != nil {
			return err
		}
		for _, e := range chunk.entries {
			if err := w.reauthorize(); err != nil {
				return err
			}
			w.seen.Saw(e.Shard, e.Place)
			if e.Of == nil {
				unknown = true // it cannot be read
				continue
			}
			if w.req.Filter != "" && !e.Newest {
				unknown = unknown || w.mayRead(&e.Instance, e.Of)
				continue
			}
			if err := w.showStored(e, &unknown); err != nil {
				return err
			}
		}
		w.seen.Raise(chunk.end)
		if !more {
			return w.loseUnknown(&unknown)
		}
		if err := w.pauseBetweenChunks(); err != nil {
			return err
		}
	}
}

type chunk struct {
	entries []*changefeed.Entry
	end     changefeed.Cursor // behind the last of them, and what did not concern the workflow
}

func (w *watcher) readChunk() (c chunk, more bool, err error) {
	s := w.service
	sn := s.o.Store.SnapshotOf(w.shards)
	defer func() { _ = sn.Close() }() // read-only: nothing to lose
	c.end = append(c.end, w.seen...)
	rows, bytes := 0, 0
	err = s.o.Changes.Walk(sn, c.end, func(row *changefeed.Row) error {
		if rows++; rows > chunkRows || len(c.entries) == chunkMax || bytes > readBytesMax {
			return changefeed.ErrEnough
		}
		if row.Workflow != w.req.WorkflowID {
			return nil
		}
		e, err := s.o.Changes.Load(sn, row)
		if err == nil && e != nil {
			err = s.o.Changes.LoadText(sn, e)
		}
		if errors.Is(err, failure.ErrExecution) {
			e, err = &changefeed.Entry{Row: row}, nil
		}
		if e == nil || err != nil {
			return err
		}
		c.entries = append(c.entries, e)
		bytes += len(e.Text) + len(e.States) + len(e.Instance.Public) + len(e.Instance.Private)
		return nil
	})
	if more = errors.Is(err, changefeed.ErrEnough); more {
		err = nil
	}
	if err == nil {
		err = s.o.Store.AwaitDurable()
	}
	return c, more, failure.OfStore(err)
}

func (w *watcher) beginAgain() error {
	now, err := w.current()
	if err != nil {
		return err
	}
	w.seen, w.next = now, w.feed.end()
	return w.lose()
}

func (w *watcher) current() (changefeed.Cursor, error) {
	now, err := w.service.o.Changes.Now(w.shards)
	if err == nil {
		err = failure.OfStore(w.service.o.Store.AwaitDurable())
	}
	if err == nil {
		// NB: in a cluster, a row may be visible before the feed gets its item; after this it has got it.
		err = w.service.o.Queries.AwaitCurrentIn(w.ctx, w.shards)
	}
	return now, err
}

func (w *watcher) showStored(e *changefeed.Entry, unknown *bool) error {
	item := &Item{ID: e.ID, Name: e.Name, Sequence: e.Sequence, Entry: e.Text, States: e.States, State: e.Instance, Of: e.Of}
	if ok, err := w.matches(item); err != nil || !ok {
		return err
	}
	if err := w.loseUnknown(unknown); err != nil {
		return err
	}
	return w.show(e.Name, e.Sequence, e.Text, e.States, w.position())
}

func (w *watcher) loseUnknown(unknown *bool) error {
	if !*unknown {
		return nil
	}
	*unknown = false
	return w.lose()
}

func (w *watcher) pauseBetweenChunks() error {
	select {
	case <-w.heartbeat.C:
		return w.tell(Event{Kind: Heartbeat})
	case <-w.service.stopped.Done():
		return errStopped
	case <-w.ctx.Done():
		return w.ctx.Err()
	default:
		return nil
	}
}

// Now and then it has a position: behind all that is durable, when nothing of it is still to be told.
func (w *watcher) beat() Event {
	e := Event{Kind: Heartbeat}
	if w.beats++; w.seen == nil || w.beats < beatsBetween {
		return e
	}
	w.beats = 0
	if now, err := w.current(); err == nil && w.feed.end() == w.next {
		w.seen.Raise(now)
		e.ID = w.position()
	}
	return e
}
