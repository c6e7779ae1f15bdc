package replicatest_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"troupe/persistence/key"
)

// script has things happen to a cluster one after the other, with nothing left to chance: each step waits for the one before.
type script struct {
	*cluster
	// leader leads shard 0 at first, next is the node that leads it while leader is cut off, and follower the other one.
	leader, next, follower *node
}

// scriptedShard is the shard that a script is about, and scriptedInstance the instance in it.
const (
	scriptedShard    = key.Shard(0)
	scriptedInstance = 0
)

// leads returns the node that leads, and is not one.
func (s *script) leads(not *node) (leader *node) {
	s.t.Helper()
	s.until("nobody else leads", func() bool {
		for _, n := range s.nodes {
			n.mu.Lock()
			w := n.writers[scriptedShard]
			n.mu.Unlock()
			if n != not && n.store.Epoch(scriptedShard) != 0 && w != nil && w.epoch == n.store.Epoch(scriptedShard) {
				leader = n
			}
		}
		return leader != nil
	})
	return leader
}

// writer is that of the epoch in which the node leads, or led last.
func (n *node) writer() *writer {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.writers[scriptedShard]
}

// begins has the leader write something that is acknowledged, and every node have it.
func (s *script) begins() {
	s.leader = s.leads(nil)
	for _, n := range s.nodes {
		if n != s.leader {
			s.follower, s.next = s.next, n
		}
	}
	s.writes(s.leader)
	s.settle()
}

// writes has a node write an entry, and waits for the answer.
func (s *script) writes(n *node) {
	s.t.Helper()
	w := n.writer()
	w.write(scriptedInstance)
	s.answered(w)
}

func (s *script) answered(w *writer) {
	s.t.Helper()
	s.until("a write has no answer", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.ahead == 0 })
}

// cutOff cuts off the leader and has it write twice, which nobody else gets; then another one leads and writes once.
func (s *script) cutOff(meanwhile func(old *writer)) {
	s.t.Helper()
	old := s.leader.writer()
	s.net.Isolate(s.leader.name, s.names, true)
	old.write(scriptedInstance)
	old.write(scriptedInstance)
	if meanwhile != nil {
		meanwhile(old)
	}
	s.next = s.leads(s.leader)
	s.answered(old)
	s.writes(s.next)
	s.net.Isolate(s.leader.name, s.names, false)
	s.settle()
}

// planted are mistakes, each with the events that show it and what is said then.
var planted = []struct {
	name string
	simulation
	script func(*script)
	said   string
}{
	{"disks that lie about syncs", simulation{noSync: true}, func(s *script) {
		s.lies.Store(true)
		s.writes(s.leader)
		for _, n := range s.nodes {
			s.net.Isolate(n.name, s.names, true)
		}
		for _, n := range s.nodes {
			n.crash(nil, 0)
		}
		s.lies.Store(false)
		for _, n := range s.nodes {
			n.restart()
		}
	}, "was acknowledged"},
	{"writers that keep what they hold", simulation{memory: true}, func(s *script) {
		first := s.leader
		s.cutOff(nil)
		s.until("the first does not lead again", func() bool {
			_ = s.leads(nil).store.Replica(scriptedShard).HandOver(s.t.Context(), first.name)
			return s.leads(nil) == first
		})
		s.writes(first)
	}, "is missing"},
	{"unknown outcomes taken for success", simulation{tooEarly: true}, func(s *script) { s.cutOff(nil) }, "was acknowledged"},
	{"a leader that shows what is not confirmed", simulation{unasked: true}, func(s *script) {
		s.cutOff(func(old *writer) { old.look(scriptedInstance) })
	}, "somebody was shown"},
	{"a follower that does not ask", simulation{unasked: true}, func(s *script) {
		s.net.Isolate(s.follower.name, s.names, true)
		s.writes(s.leader)
		s.follower.lookThere(scriptedShard, scriptedInstance)
		synctest.Wait() // it has looked, or waits for what the leader has
		s.net.Isolate(s.follower.name, s.names, false)
	}, "was shown with 1 entries after 2"},
	{"a node that leaves by what it heard earlier", simulation{hasty: true}, func(s *script) {
		g := s.leader.store.Replica(scriptedShard)
		s.check(g.Remove(s.follower.name))
		s.check(g.AddLearner(s.follower.name)) // its copy is there still
		s.check(s.follower.store.AwaitApplied(s.t.Context(), scriptedShard, g.Applied()))
		s.check(g.AddVoter(s.follower.name))
		s.check(s.next.store.AwaitApplied(s.t.Context(), scriptedShard, g.Applied())) // else it could not lead with that vote
		s.net.Isolate(s.next.name, s.names, true)
		s.writes(s.leader)
		removed := func() error { return s.removedFrom(s.follower, scriptedShard) }
		if s.sim.hasty {
			removed = nil
		}
		left := s.follower.store.Leave(scriptedShard, removed) == nil
		assert.Equal(s.t, s.sim.hasty, left, "it has removed its copy")
		s.check(s.follower.store.Join(scriptedShard))
		s.net.Isolate(s.leader.name, s.names, true)
		s.net.Set(s.next.name, s.follower.name, false)
		s.net.Set(s.follower.name, s.next.name, false)
		s.leads(s.leader)
		s.net.Isolate(s.leader.name, s.names, false)
	}, "was acknowledged"},
}

// TestTheSimulationFindsWhatIsWrong: without this TestNothingIsLostUnderFaults would mean nothing. Each planted mistake is found whenever the
// events come that show it, and the same events show nothing where it is not made.
func TestTheSimulationFindsWhatIsWrong(t *testing.T) {
	for _, mistake := range planted {
		for _, made := range []bool{true, false} {
			name, sim := mistake.name, mistake.simulation
			if !made {
				name, sim = "without "+name, simulation{}
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &script{cluster: newCluster(t, sim)}
					s.begins()
					mistake.script(s)
					faults := s.settledFaults()
					s.close()
					assert.True(t, strings.Contains(strings.Join(faults, "\n"), mistake.said) == made && (made || faults == nil), "%v %v %v", faults, mistake.said, made)
				})
			})
		}
	}
}
