package statemachine

import (
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	concurrent "sync/atomic"
	"time"
)

// configuration is a set of active nodes (W3C SCXML, 3.11, "legal state
// configuration") with what is said of it again and again. It is shared by all
// instances that are in it, and never changed.
type configuration struct {
	active    nodeSet
	positions []Position
	end       []NodeID // the nodes of positions
	states    []byte   // the JSON array of positions
	// initial: these are the nodes that a creation enters, before anything else moves it; done: every state machine is in a final one.
	initial, done bool
}

// configurationsKept is how many configurations of a definition are kept. A chart
// with parallel machines can have more than anybody could count.
const configurationsKept = 1024

// configurations are those of a definition that were met, by their nodes.
type configurations struct {
	mu    sync.Mutex // held to add one
	known concurrent.Pointer[map[string]*configuration]
}

// configurationOf returns the configuration with these nodes, which it copies.
func (d *Definition) configurationOf(active nodeSet) *configuration {
	var room [64]byte
	key := room[:0]
	for _, word := range active {
		key = binary.LittleEndian.AppendUint64(key, word)
	}
	if known := d.configurations.known.Load(); known != nil {
		if c := (*known)[string(key)]; c != nil {
			return c
		}
	}
	c := d.newConfiguration(active.clone())
	c.initial, c.done = slices.Equal(active, d.initialNodes()), d.isDoneWith(active)
	return d.configurations.add(string(key), c)
}

// add keeps c unless there are too many, and returns the one to use.
func (cs *configurations) add(key string, c *configuration) *configuration {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	next := make(map[string]*configuration)
	if known := cs.known.Load(); known != nil {
		if first := (*known)[key]; first != nil {
			return first
		}
		if len(*known) >= configurationsKept {
			return c
		}
		maps.Copy(next, *known)
	}
	next[key] = c
	cs.known.Store(&next)
	return c
}

func (d *Definition) newConfiguration(active nodeSet) *configuration {
	c := &configuration{active: active}
	for _, m := range d.machines {
		c.positions = appendPositions(c.positions, m, active)
	}
	for _, p := range c.positions {
		c.end = append(c.end, p.Node)
	}
	c.states = appendPositionList(nil, c.positions)
	return c
}

// initialNodes are those that a creation enters, before anything else moves it.
func (d *Definition) initialNodes() nodeSet {
	d.initialOnce.Do(func() {
		m := d.newMove(&Instance{}, newNodeSet(len(d.nodes)), systemCaller, time.Time{})
		defer m.release()
		d.initial = newNodeSet(len(d.nodes))
		m.planRegions(d.initial, d.nodes[0], d.nodes[0])
	})
	return d.initial
}
