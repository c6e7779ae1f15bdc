package chart

import (
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Configuration is a set of active nodes (W3C SCXML, 3.11, "legal state configuration") with what is said of it again and again.
// It is shared by all instances that are in it, and never changed.
type Configuration struct {
	Active    NodeSet
	Positions []Position
	End       []NodeID // the nodes of positions
	States    []byte   // the JSON array of positions
	// Initial: these are the nodes that a creation enters, before anything else moves it; done: every state machine is in a final one.
	Initial, Done bool
}

// configurationsKept is how many configurations of a definition are kept. A chart
// with parallel machines can have more than anybody could count.
const configurationsKept = 1024

// Configurations are those of a definition that were met, by their nodes.
type Configurations struct {
	mu    sync.Mutex // held to add one
	known atomic.Pointer[map[string]*Configuration]
}

// ConfigurationOf returns the configuration with these nodes, which it copies.
func (d *Definition) ConfigurationOf(active NodeSet) *Configuration {
	var buffer [64]byte
	key := buffer[:0]
	for _, word := range active {
		key = binary.LittleEndian.AppendUint64(key, word)
	}
	if known := d.Configurations.known.Load(); known != nil {
		if c := (*known)[string(key)]; c != nil {
			return c
		}
	}
	c := d.NewConfiguration(active.clone())
	c.Initial, c.Done = slices.Equal(active, d.InitialNodes), d.IsDoneWith(active)
	return d.Configurations.add(string(key), c)
}

// add keeps c unless there are too many, and returns the one to use.
func (cs *Configurations) add(key string, c *Configuration) *Configuration {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	next := make(map[string]*Configuration)
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

// NewConfiguration is what is said of the nodes, which it keeps.
func (d *Definition) NewConfiguration(active NodeSet) *Configuration {
	c := &Configuration{Active: active}
	for _, m := range d.Machines {
		c.Positions = appendPositions(c.Positions, m, active)
	}
	for _, p := range c.Positions {
		c.End = append(c.End, p.Node)
	}
	c.States = appendPositionList(nil, c.Positions)
	return c
}
