package cluster

import (
	"math"

	"troupe/actors/failure"
)

// levelHere is what this program can do together with others. It goes up when programs of the level before cannot work
// with what this one sends or writes. It does so once all nodes have the level (directory).
//
//	1  the first, of version 0.1.0
const levelHere = 1

// Programs that are no releases can have one version and different levels.
func (n *Node) levelRefusal(who, version string, has int) error {
	if d := n.directory.Load(); d != nil && has < d.Level {
		return failure.Refuse(errUnfit, "%s runs version %s of level %d, and all nodes of the cluster have had level %d: start it with a newer program", who, version, has, d.Level)
	}
	if has > n.level+1 || has < n.level-1 {
		return failure.Refuse(errUnfit, "%s runs version %s of level %d, and the cluster %s of level %d: only levels that are next to each other run together", who, version, has, n.o.Version, n.level)
	}
	return nil
}

func (d *directory) levelOfAll() int {
	lowest := math.MaxInt
	for _, m := range d.Nodes {
		lowest = min(lowest, m.Level)
	}
	if len(d.Nodes) == 0 {
		return d.Level
	}
	return max(d.Level, lowest)
}
