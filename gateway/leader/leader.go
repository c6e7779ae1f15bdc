// Package leader is the header Troupe-Leader, with which the nodes of a cluster say which of them leads an instance, and
// the table that clients make of it, so that they ask that node at once (gateway/INTERFACE.md, "Which node leads").
package leader

import (
	"strconv"
	"strings"
	"sync"

	"github.com/oklog/ulid/v2"

	"troupe/persistence/key"
)

// Header is its name.
const Header = "Troupe-Leader"

const (
	slotsMax = 1 << 16
	nodeMax  = 64  // bytes of a node's id
	nodesMax = 256 // of a table
)

// Place is what the header says: Node leads all instances in the slots First to Last, of Slots, and Self has been asked.
type Place struct {
	Node, Self         string
	First, Last, Slots int
}

// String returns the value of the header.
func (p Place) String() string {
	b := make([]byte, 0, 96)
	b = append(append(b, p.Node...), "; self="...)
	b = append(append(b, p.Self...), "; slots="...)
	b = append(strconv.AppendInt(b, int64(p.First), 10), '-')
	b = append(strconv.AppendInt(b, int64(p.Last), 10), '/')
	return string(strconv.AppendInt(b, int64(p.Slots), 10))
}

// Parse reads the value of the header. It skips parameters that it does not know.
func Parse(value string) (p Place, ok bool) {
	node, rest, more := strings.Cut(value, ";")
	p.Node = strings.TrimSpace(node)
	for more {
		var part string
		part, rest, more = strings.Cut(rest, ";")
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "self":
			p.Self = value
		case "slots":
			p.First, p.Last, p.Slots = parseSlots(value)
		}
	}
	return p, isNode(p.Node) && isNode(p.Self) && p.Slots > 0
}

// parseSlots returns 0 slots for what is none.
func parseSlots(text string) (first, last, slots int) {
	span, of, _ := strings.Cut(text, "/")
	from, to, _ := strings.Cut(span, "-")
	first, errFirst := strconv.Atoi(from)
	last, errLast := strconv.Atoi(to)
	slots, errSlots := strconv.Atoi(of)
	if errFirst != nil || errLast != nil || errSlots != nil || first < 0 || last < first || last >= slots || slots > slotsMax {
		return 0, 0, 0
	}
	return first, last, slots
}

func isNode(id string) bool { return id != "" && len(id) <= nodeMax }

// SlotOf returns the slot of an instance, and false for what is not the id of one.
func SlotOf(instance string, slots int) (int, bool) {
	id, err := ulid.ParseStrict(instance)
	return int(key.ID(id).Shard(slots)), err == nil
}

// Table has which of several addresses leads which instances. The zero value knows nothing. Its methods may be called at
// once.
type Table struct {
	mu        sync.RWMutex
	addresses map[string]int // by the node's id
	leaders   []string       // the node's id, by slot
}

// Learn takes the header of an answer that came from an address. Any other text is ignored.
func (t *Table) Learn(address int, header string) {
	p, ok := Parse(header)
	if !ok || t.knows(address, &p) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.leaders) != p.Slots {
		t.leaders = make([]string, p.Slots)
	}
	for slot := p.First; slot <= p.Last; slot++ {
		t.leaders[slot] = p.Node
	}
	if t.addresses == nil || len(t.addresses) >= nodesMax {
		t.addresses = map[string]int{}
	}
	t.addresses[p.Self] = address
}

func (t *Table) knows(address int, p *Place) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	at, there := t.addresses[p.Self]
	return there && at == address && len(t.leaders) == p.Slots && t.leaders[p.First] == p.Node && t.leaders[p.Last] == p.Node
}

// Find returns the address of the node that leads an instance, as far as answers have told.
func (t *Table) Find(instance string) (address int, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.leaders) == 0 {
		return 0, false
	}
	slot, ok := SlotOf(instance, len(t.leaders))
	if !ok {
		return 0, false
	}
	address, ok = t.addresses[t.leaders[slot]]
	return address, ok
}
