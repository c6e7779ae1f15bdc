package replica

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/raft/v3/raftpb"
)

// Member is a replica of the group.
type Member struct {
	Node string
	// Voter: it counts for majorities. Others get the log and never lead.
	Voter bool
}

// members are the nodes of a group, by their ids, as in raftpb.ConfState, and the shards that it keeps.
type members struct {
	Voters    []string `json:"voters,omitempty"`
	Learners  []string `json:"learners,omitempty"`
	Outgoing  []string `json:"outgoing,omitempty"`
	Next      []string `json:"next,omitempty"`
	AutoLeave bool     `json:"autoLeave,omitempty"`
	// Last is the last shard of the group; with none behind the first it may be 0.
	Last uint16 `json:"last,omitempty"`
}

// last returns the last shard of a group that begins with a shard.
func (m members) last(first uint16) uint16 { return max(first, m.Last) }

func (m members) encode() []byte {
	encoded, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("replica: encode members: %v", err)) // it has texts only
	}
	return encoded
}

func decodeMembers(encoded []byte) (m members, err error) {
	if err := json.Unmarshal(encoded, &m); err != nil {
		return m, fmt.Errorf("%w: its members cannot be read: %w", ErrDamaged, err)
	}
	return m, nil
}

func (m members) confState() *raftpb.ConfState {
	ids := func(nodes []string) (ids []uint64) {
		for _, n := range nodes {
			ids = append(ids, raftID(n))
		}
		return ids
	}
	return &raftpb.ConfState{
		Voters: ids(m.Voters), Learners: ids(m.Learners), VotersOutgoing: ids(m.Outgoing), LearnersNext: ids(m.Next), AutoLeave: new(m.AutoLeave),
	}
}

// all returns every node of the group, each once.
func (m members) all() []string {
	all := slices.Concat(m.Voters, m.Learners, m.Outgoing, m.Next)
	slices.Sort(all)
	return slices.Compact(all)
}

// name returns the node that Raft knows under a number.
func (m members) name(id uint64) string {
	for _, list := range [][]string{m.Voters, m.Learners, m.Outgoing, m.Next} {
		for _, n := range list {
			if raftID(n) == id {
				return n
			}
		}
	}
	return ""
}

// follow returns the members after a change, which may have added a node.
func (m members) follow(conf *raftpb.ConfState, added string) members {
	name := func(id uint64) string {
		if added != "" && raftID(added) == id {
			return added
		}
		return m.name(id)
	}
	names := func(ids []uint64) (nodes []string) {
		for _, id := range ids {
			nodes = append(nodes, name(id))
		}
		slices.SortFunc(nodes, strings.Compare)
		return nodes
	}
	return members{
		Voters: names(conf.GetVoters()), Learners: names(conf.GetLearners()), Outgoing: names(conf.GetVotersOutgoing()),
		Next: names(conf.GetLearnersNext()), AutoLeave: conf.GetAutoLeave(), Last: m.Last,
	}
}

// changeContext stands in an entry about the members.
type changeContext struct {
	ID   string `json:"id"`
	Node string `json:"node"`
}

// raftID is the number under which Raft knows a node.
func raftID(node string) uint64 {
	sum := sha256.Sum256([]byte(node))
	return binary.BigEndian.Uint64(sum[:])>>1 | 1 // NB: zero and the highest have a meaning of their own
}
