package replica

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// lagBytesMax is how many bytes of confirmed entries wait at most to be applied.
const lagBytesMax = 256 << 10

// lag is what a group puts off until its next tick, while it has much to do: somebody waits for what its leader shows,
// and nobody for what the others do. So the leader tells them once a tick what is confirmed, unless a message with
// entries says it before, and they apply all of that at once. It belongs to the round.
type lag struct {
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

// withhold reports whether a message was put off, as it tells a member only that more is confirmed.
func (l *lag) withhold(m *raftpb.Message) bool {
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

// apply puts confirmed entries off.
func (l *lag) apply(m *raftpb.Message) {
	l.applies = append(l.applies, m)
	for _, e := range m.GetEntries() {
		l.bytes += len(e.GetData())
	}
}

// tell sends what was put off of what the members are to know.
func (g *Group) tell() {
	for to, n := range g.lag.notices {
		if n.later != nil {
			g.deliver(n.later)
			n.later = nil
			g.lag.notices[to] = n
		}
	}
}

// catchUp has applied what is confirmed, unless that can wait until the next tick.
func (g *Group) catchUp(r *round, ticked bool, wanted uint64) {
	l := &g.lag
	wait := l.busy && !ticked && g.leading == 0 && wanted <= g.state.at.applied && l.bytes < lagBytesMax
	if len(l.applies) > 0 {
		l.news = true
		if !wait || slices.ContainsFunc(l.applies, changesMembers) {
			g.applyAll(r)
		}
	}
	if ticked {
		l.busy, l.news = l.news, false
	}
}

// applyAll has applied what is confirmed.
func (g *Group) applyAll(r *round) {
	l := &g.lag
	if len(l.applies) == 0 {
		return
	}
	m := l.applies[0]
	for _, next := range l.applies[1:] {
		m.Entries = append(slices.Clip(m.Entries), next.GetEntries()...)
		m.Responses = append(slices.Clip(m.Responses), next.GetResponses()...)
	}
	r.applies = append(r.applies, applying{group: g, m: m})
	l.applies, l.bytes = nil, 0
}

func changesMembers(m *raftpb.Message) bool {
	return slices.ContainsFunc(m.GetEntries(), func(e *raftpb.Entry) bool { return e.GetType() != raftpb.EntryNormal })
}
