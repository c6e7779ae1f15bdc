package task

import (
	"context"
	"errors"
	"slices"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// heartbeatEvery is how often a watcher for whom there is nothing is told so.
const heartbeatEvery = 15 * time.Second

// WatchRequest asks for what comes into the caller's worklists and goes from them.
type WatchRequest struct {
	Caller *identity.Principal
	// Reauthorize returns the caller as of now, or an error that ends the watch. It is called before each event.
	Reauthorize func() (*identity.Principal, error)
}

// EventKind is what an Event says.
type EventKind uint8

const (
	Opened    EventKind = iota // it begins: everything that is acknowledged from now on comes
	Changed                    // the tasks of an instance are others
	Lost                       // something is missing: read the list again
	Heartbeat                  // nothing happened for a while
)

// Event is one thing that a watcher is told.
type Event struct {
	Kind EventKind
	// WorkflowID and InstanceID are those of Changed, and Items all open tasks of the instance that the caller has or
	// may take over.
	WorkflowID, InstanceID string
	Items                  []*Item
}

var errOver = errors.New("watching has stopped")

// Watcher runs watches of tasks.
type Watcher struct {
	*Lists
	Feed *Feed
	// Stopped ends when the watches end.
	Stopped context.Context //nolint:containedctx // of the service
}

// Watch calls yield with Opened, then with Changed for each instance whose tasks have changed for the caller. It
// returns nil when the service stops, ctx's error, yield's own, or failure.ErrUnavailable.
func (s *Watcher) Watch(ctx context.Context, req *WatchRequest, yield func(*Event) error) error {
	if s.Stopped.Err() != nil {
		return failure.ErrUnavailable
	}
	w := s.Feed.join(append(candidateLists(catalog.CallerOf(req.Caller)), worklist{listMine, string(req.Caller.ID)}))
	defer s.Feed.leave(w)
	if err := s.settle(ctx); err != nil {
		return err
	}
	err := s.run(ctx, w, req, yield)
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

func (s *Watcher) settle(ctx context.Context) error {
	s.Catalog.AwaitCommits()
	if err := s.Store.AwaitDurable(); err != nil {
		return failure.Errorf(failure.ErrUnavailable, "%w", err)
	}
	return s.Queries.AwaitCurrent(ctx, key.EveryShard)
}

func (s *Watcher) run(ctx context.Context, w *watcher, req *WatchRequest, yield func(*Event) error) error {
	beat := time.NewTimer(heartbeatEvery)
	defer beat.Stop()
	caller := req.Caller
	tell := func(e *Event) (err error) {
		if caller, err = req.Reauthorize(); err != nil {
			return err
		}
		beat.Reset(heartbeatEvery)
		return yield(e)
	}
	if err := tell(&Event{Kind: Opened}); err != nil {
		return err
	}
	told := map[instance]bool{} // those of which the caller was last told that they have tasks
	for {
		select {
		case <-w.wake:
		case <-beat.C:
			if err := tell(&Event{Kind: Heartbeat}); err != nil {
				return err
			}
			continue
		case <-ctx.Done():
			return ctx.Err()
		case <-s.Stopped.Done():
			return errOver
		}
		changed, lost := w.take()
		if lost {
			if err := tell(&Event{Kind: Lost}); err != nil {
				return err
			}
		}
		for _, of := range changed {
			e, err := s.look(ctx, caller, of, told)
			if err == nil && e != nil {
				err = tell(e)
			}
			if err != nil {
				return err
			}
		}
	}
}

const toldMax = 10_000

func (s *Watcher) look(ctx context.Context, p *identity.Principal, at instance, told map[instance]bool) (e *Event, err error) {
	c, now := catalog.CallerOf(p), s.Clock()
	err = s.Queries.Read(ctx, p.ID, func(r *query.Reader) error {
		sh := s.Store.ShardOf(at.id)
		whole, err := loadWhole(r, s.Catalog, sh, at.workflow, at.id)
		if err != nil {
			return err
		}
		if !whole.MayRead(c, now) {
			return nil
		}
		requester, err := LoadRequester(r, sh, at.id)
		if err != nil {
			return err
		}
		e = &Event{Kind: Changed, WorkflowID: at.workflow, InstanceID: whole.State.ID, Items: whole.itemsFor(c, now, requester)}
		return nil
	})
	if err != nil && !isSkipped(err) {
		return nil, err
	}
	switch {
	case e != nil && len(e.Items) > 0:
		if len(told) < toldMax {
			told[at] = true
		}
		return e, nil
	case e == nil && told[at]: // it may not be read any more
		e = &Event{Kind: Changed, WorkflowID: at.workflow, InstanceID: instanceid.Text(at.id)}
	}
	delete(told, at)
	return e, nil
}

func (w *Whole) itemsFor(c *statemachine.Caller, now time.Time, requester string) (items []*Item) {
	for _, t := range w.State.Tasks() {
		if i := w.ItemOf(&t, c, now, requester); i.IsFor(c) {
			items = append(items, i)
		}
	}
	return slices.Clip(items)
}
