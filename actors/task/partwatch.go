package task

import (
	"context"
	"errors"
	"slices"
	"time"

	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/actors/identity"
	"troupe/persistence/key"
)

// epochEvery is the time between two looks whether the shards of a part are led here still.
const epochEvery = time.Second

// watched asks for what comes into the worklists of a caller, of the instances in some shards.
type watched struct{ Caller *identity.Principal }

// watchEvent is an Event as it travels. Shards are those that have Opened.
type watchEvent struct {
	Event
	Shards []key.Shard
}

// ShareWatches has watches told by the leaders of all shards. It is called before the first watch.
func (s *Watcher) ShareWatches(of *fanout.Service) {
	s.kind = fanout.NewKind(of, "task watch", s.readPart)
	s.kind.Live = true
}

func (s *Watcher) readPart(ctx context.Context, shards []key.Shard, in *watched, yield func(watchEvent) error) (end struct{}, err error) {
	req := &WatchRequest{Caller: in.Caller, Reauthorize: func() (*identity.Principal, error) { return in.Caller, nil }}
	return end, s.watch(ctx, shards, req, func(e *Event) error { return yield(watchEvent{*e, shards}) })
}

// merged is a watch that the leaders tell. Who the caller is, it asks itself. A leader that comes later may have missed
// something.
func (s *Watcher) merged(ctx context.Context, req *WatchRequest, yield func(*Event) error) error {
	if s.Stopped.Err() != nil {
		return failure.ErrUnavailable
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.Stopped, cancel)()
	m := &watchMerge{store: len(s.Store.Numbered()), req: req, caller: req.Caller, yield: yield}
	err := errRights
	for errors.Is(err, errRights) {
		err = s.kind.Follow(ctx, nil, func([]key.Shard) *watched { return &watched{m.caller} }, m.take)
	}
	if s.Stopped.Err() != nil {
		return nil
	}
	return err
}

type watchMerge struct {
	store  int // how many shards there are
	req    *WatchRequest
	caller *identity.Principal // of whom the leaders know
	yield  func(*Event) error
	open   map[key.Shard]bool // the shards that were heard of before it began
	begun  bool
	told   time.Time
}

// errRights: the caller has other rights than those of which the leaders know.
var errRights = errors.New("the rights are others")

func (m *watchMerge) take(e watchEvent) error {
	p, err := m.req.Reauthorize()
	if err != nil {
		return err
	}
	if p.ID != m.caller.ID || !slices.Equal(p.Roles, m.caller.Roles) || !slices.Equal(p.Privileges, m.caller.Privileges) {
		m.caller = p
		return errRights
	}
	switch {
	case e.Kind == Opened && m.begun:
		return m.tell(&Event{Kind: Lost})
	case e.Kind == Opened:
		if m.open == nil {
			m.open = map[key.Shard]bool{}
		}
		for _, sh := range e.Shards {
			m.open[sh] = true
		}
		if m.begun = len(m.open) == m.store; m.begun {
			return m.tell(&e.Event)
		}
		return nil
	case !m.begun, e.Kind == Heartbeat && time.Since(m.told) < heartbeatEvery:
		return nil
	}
	return m.tell(&e.Event)
}

func (m *watchMerge) tell(e *Event) error {
	m.told = time.Now()
	return m.yield(e)
}
