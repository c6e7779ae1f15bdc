// Package lag has what a busy group puts off until its next tick.
package lag

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"troupe/persistence/replica/internal/entry"
)

// bytesMax is how many bytes of confirmed entries wait at most to be applied.
const bytesMax = 256 << 10

// Lag is what a group puts off until its next tick, while it has much to do: somebody waits for what its leader shows,
// and nobody for what the others do. So the leader tells them once a tick what is confirmed, unless a message with
// entries says it before, and they apply all of that at once. It belongs to the round; the zero value is ready.
type Lag struct {
	busy    bool // something was confirmed in the tick before
	news    bool // something was confirmed in this one
	applies []*raftpb.Message
	bytes   int               // of their entries
	notices map[uint64]notice // by member
}

// notice is what a member was told of what is confirmed.
type notice struct {
	commit uint64          // told, or put off
	later  *raftpb.Message // put off
}

// Withhold reports whether a message was put off, as it tells a member only that more is confirmed.
func (l *Lag) Withhold(m *raftpb.Message) bool {
	if m.GetType() != raftpb.MsgApp {
		return false
	}
	was, empty := l.notices[m.GetTo()], len(m.GetEntries()) == 0
	switch news := m.GetCommit() > was.commit; {
	case empty && !news:
		return false // it asks how far the member is
	case empty && l.busy:
		was.later = m
	default:
		was.later = nil
	}
	was.commit = m.GetCommit()
	if l.notices == nil {
		l.notices = map[uint64]notice{}
	}
	l.notices[m.GetTo()] = was
	l.news = true
	return was.later != nil
}

// Apply puts confirmed entries off.
func (l *Lag) Apply(m *raftpb.Message) {
	l.applies = append(l.applies, m)
	for _, e := range m.GetEntries() {
		l.bytes += len(e.GetData())
	}
}

// Forget drops what members were told: another node leads, or nobody.
func (l *Lag) Forget() { l.notices = nil }

// Told returns what was put off of what members are to know.
func (l *Lag) Told() (all []*raftpb.Message) {
	for to, n := range l.notices {
		if n.later != nil {
			all = append(all, n.later)
			l.notices[to] = notice{commit: n.commit}
		}
	}
	return all
}

// Due returns what is to be applied now, in one message, or nil. Somebody awaits it where the group is led, and where
// AwaitApplied was called.
func (l *Lag) Due(ticked, awaited bool) (m *raftpb.Message) {
	l.news = l.news || len(l.applies) > 0
	if ticked || awaited || !l.busy || l.bytes >= bytesMax || slices.ContainsFunc(l.applies, ChangesGroup) {
		m = l.Take()
	}
	if ticked {
		l.busy, l.news = l.news, false
	}
	return m
}

// Take returns what is to be applied in one message, nil when there is nothing.
func (l *Lag) Take() (m *raftpb.Message) {
	for _, next := range l.applies {
		if m == nil {
			m = next
			continue
		}
		m.Entries = append(slices.Clip(m.Entries), next.GetEntries()...)
		m.Responses = append(slices.Clip(m.Responses), next.GetResponses()...)
	}
	l.applies, l.bytes = nil, 0
	return m
}

// ChangesGroup reports whether a message has entries about what the group is. Its members are told of them at once: who
// does not know them cannot lead.
func ChangesGroup(m *raftpb.Message) bool {
	return slices.ContainsFunc(m.GetEntries(), func(e *raftpb.Entry) bool {
		return e.GetType() != raftpb.EntryNormal || entry.IsDivide(e.GetData())
	})
}

// OnlyHeartbeats reports whether messages tell only that somebody is there.
func OnlyHeartbeats(all []*raftpb.Message) bool {
	for _, m := range all {
		if t := m.GetType(); t != raftpb.MsgHeartbeat && t != raftpb.MsgHeartbeatResp {
			return false
		}
	}
	return true
}
