package watch

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/changefeed"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/persistence/key"
)

// In a cluster, a watch follows the leaders: of all shards, or of the one that its instance is in. Each tells what its
// shards have behind a position, so that a new leader goes on where the one before ended.

// partOf is what a leader tells.
type partOf struct {
	Caller             *identity.Principal
	WorkflowID, Filter string
	InstanceID         string // as in Request
	Since              string // the position behind which it goes on; empty, of one instance only: the present
}

// event is an Event as it travels.
type event struct{ Event }

// opened tells of which shards every entry comes from now on.
func opened(shards []key.Shard) (told []byte) {
	for _, sh := range shards {
		told = binary.BigEndian.AppendUint16(told, uint16(sh))
	}
	return told
}

// AppendBinary appends kind(1) ID(uvarint length in front) data.
func (e event) AppendBinary(dst []byte) ([]byte, error) {
	dst = binary.AppendUvarint(append(dst, byte(e.Kind)), uint64(len(e.ID)))
	return append(append(dst, e.ID...), e.Data...), nil
}

// UnmarshalBinary reads what AppendBinary wrote, and keeps it.
func (e *event) UnmarshalBinary(b []byte) error {
	if len(b) < 1 {
		return errEvent
	}
	length, n := binary.Uvarint(b[1:])
	rest := b[1+max(n, 0):]
	if n <= 0 || length > uint64(len(rest)) {
		return errEvent
	}
	e.Kind, e.ID, e.Data = Kind(b[0]), string(rest[:length]), rest[length:]
	return nil
}

var errEvent = errors.New("an event of a watch cannot be read")

// epochEvery is the time between two looks whether the shards of a part are led here still.
const epochEvery = time.Second

func (w *watcher) leads() error {
	for _, sh := range w.shards {
		if w.service.o.Store.Epoch(sh) == 0 {
			return failure.Elsewhere(uint16(sh))
		}
	}
	return nil
}

// readPart tells what some shards have behind a cursor, until this node leads one of them no more.
func (s *Service) readPart(ctx context.Context, shards []key.Shard, in *partOf, yield func(event) error) (end struct{}, err error) {
	w := &watcher{
		service: s, caller: catalog.CallerOf(in.Caller), shards: shards, isPart: true,
		req: &Request{Caller: in.Caller, WorkflowID: in.WorkflowID, InstanceID: in.InstanceID, Filter: in.Filter, LastEventID: in.Since},
		yield: func(e Event) error {
			if e.Data = bytes.Clone(e.Data); e.Kind == Opened {
				e.Data = opened(shards)
			}
			return yield(event{e})
		},
	}
	return end, w.watch(ctx)
}

// merged is a watch of what the leaders tell. Who the caller is, it asks itself; a part ends when they have other rights.
func (s *Service) merged(ctx context.Context, req *Request, yield func(Event) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopped, cancel)()
	w := &watcher{service: s, req: req, caller: catalog.CallerOf(req.Caller), yield: yield}
	m := &merging{watcher: w, principal: req.Caller, at: req.LastEventID}
	w.heartbeat = time.NewTimer(heartbeatEvery)
	defer w.heartbeat.Stop()
	err := w.check()
	if err == nil && req.InstanceID != "" {
		err = m.findInstance()
	} else if err == nil {
		w.seen, err = s.o.Changes.Present(ctx)
	}
	if err != nil {
		return failure.In("watch", req.WorkflowID, err)
	}
	if w.seen != nil {
		err = m.begin()
	}
	if err != nil {
		return err
	}
	err = errRights
	for errors.Is(err, errRights) {
		err = s.kind.Follow(ctx, m.follows, m.partOf, m.take)
	}
	if s.stopped.Err() != nil {
		return nil
	}
	return err
}

// merging is a watch whose events come from other nodes, or from this one.
type merging struct {
	*watcher
	principal *identity.Principal // of whom the parts know
	follows   []key.Shard         // nil: all
	at        string              // of one instance: the last position that was told, or is known to have nothing before it to tell
	opened    bool                // Opened was told
	closed    map[key.Shard]bool  // of a workflow: the shards of which not every entry comes yet
	told      time.Time           // something was
	raised    bool                // a heartbeat has raised the position since it was told last
}

// errRights: the caller has other rights than those of which the parts know.
var errRights = errors.New("the rights are others")

// findInstance finds out who is asked. The leader says whether the caller may see the instance.
func (m *merging) findInstance() error {
	id, ok := instanceid.Parse(m.req.InstanceID)
	if !ok {
		return failure.ErrNotFound
	}
	m.follows = []key.Shard{m.service.o.Store.ShardOf(id)}
	return nil
}

// begin begins the watch of a workflow. One that goes on behind what the caller has seen is open at once, and a new one when
// every entry comes.
func (m *merging) begin() error {
	id := m.req.LastEventID
	if id == "" {
		m.closed = map[key.Shard]bool{}
		for _, sh := range m.service.o.Store.Numbered() {
			m.closed[sh] = true
		}
		return nil
	}
	m.opened = true
	if err := m.say(Event{Kind: Opened, ID: id}); err != nil {
		return err
	}
	seen, err := changefeed.ParseCursor(id, len(m.seen))
	if err != nil {
		return m.lose()
	}
	m.seen = seen
	return nil
}

func (m *merging) say(e Event) error {
	m.told = time.Now()
	return m.tell(e)
}

func (m *merging) partOf([]key.Shard) *partOf {
	in := &partOf{Caller: m.principal, WorkflowID: m.req.WorkflowID, InstanceID: m.req.InstanceID, Filter: m.req.Filter, Since: m.at}
	if m.seen != nil {
		in.Since = m.seen.String()
	}
	return in
}

func (m *merging) take(e event) error {
	if m.req.Reauthorize != nil {
		p, err := m.req.Reauthorize()
		if err != nil {
			return err
		}
		if p.ID != m.principal.ID || !slices.Equal(p.Roles, m.principal.Roles) || !slices.Equal(p.Privileges, m.principal.Privileges) {
			m.principal = p
			return errRights
		}
	}
	if m.seen == nil {
		return m.takeOfOne(e.Event)
	}
	if e.ID != "" && e.Kind != Opened {
		seen, err := changefeed.ParseCursor(e.ID, len(m.seen))
		if err != nil {
			return failure.Errorf(failure.ErrUnavailable, "a position of another node: %w", err)
		}
		m.seen.Raise(seen)
		m.raised = m.raised || e.Kind == Heartbeat
	}
	if !m.opened {
		return m.open(e)
	}
	switch e.Kind {
	case Entry, Lost:
		m.raised = false
		return m.say(Event{Kind: e.Kind, ID: m.position(), Data: e.Data})
	case Heartbeat:
		if time.Since(m.told) < heartbeatEvery {
			return nil
		}
		beat := Event{Kind: Heartbeat}
		if m.raised {
			m.raised, beat.ID = false, m.position()
		}
		return m.say(beat)
	}
	return nil
}

// open tells that a new watch is open when the last of its shards is. What came before is not told: it was there by then.
func (m *merging) open(e event) error {
	for told := e.Data; e.Kind == Opened && len(told) > 1; told = told[2:] {
		delete(m.closed, key.Shard(binary.BigEndian.Uint16(told)))
	}
	if len(m.closed) > 0 {
		return nil
	}
	m.opened = true
	return m.say(Event{Kind: Opened, ID: m.position()})
}

// takeOfOne is take of what the leader of the one instance tells.
func (m *merging) takeOfOne(e Event) error {
	if e.ID != "" {
		m.at = e.ID
	}
	switch {
	case e.Kind == Opened && m.opened, e.Kind == Heartbeat && time.Since(m.told) < heartbeatEvery:
		return nil
	case e.Kind == Heartbeat:
		e.ID = ""
	}
	if e.Kind == Opened {
		e.Data = nil
	}
	m.opened = true
	return m.say(e)
}
