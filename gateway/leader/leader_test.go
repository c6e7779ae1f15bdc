package leader

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const nodeA, nodeB, nodeC = "01J0000000000000000000000A", "01J0000000000000000000000B", "01J0000000000000000000000C"

// TestParse holds gateway/INTERFACE.md, "Which node leads": what is not understood is ignored.
func TestParse(t *testing.T) {
	want := Place{Node: nodeA, Self: nodeB, First: 3, Last: 5, Slots: 16}
	for _, text := range []string{want.String(), nodeA + ";self=" + nodeB + ";slots=3-5/16", nodeA + " ; new=1; slots=3-5/16;other ; self=" + nodeB} {
		got, ok := Parse(text)
		assert.True(t, ok && got == want, "%q: got %+v", text, got)
	}
	for _, text := range []string{
		"", ";", nodeA, nodeA + "; self=" + nodeB, "; self=" + nodeB + "; slots=3-5/16", nodeA + "; slots=3-5/16", strings.Repeat("x", 65) + "; self=a; slots=3-5/16",
		nodeA + "; self=a; slots=5-3/16", nodeA + "; self=a; slots=3-16/16", nodeA + "; self=a; slots=-1-3/16", nodeA + "; self=a; slots=3/16", nodeA + "; self=a; slots=0-0/0",
		nodeA + "; self=a; slots=0-0/65537", nodeA + "; self=a; slots=3-5", nodeA + "; self=a; slots=a-b/c",
	} {
		_, ok := Parse(text)
		assert.False(t, ok, text)
		var table Table
		table.Learn(0, text)
		assert.Empty(t, table.addresses, text)
	}
}

// instanceIn draws the id of an instance in a slot.
func instanceIn(t *testing.T, slot, slots int) string {
	t.Helper()
	for {
		id := ulid.Make().String()
		at, ok := SlotOf(id, slots)
		require.True(t, ok)
		if at == slot {
			return id
		}
	}
}

func TestTable(t *testing.T) {
	var table Table
	find := func(slot, slots int) string {
		at, ok := table.Find(instanceIn(t, slot, slots))
		return fmt.Sprint(at, ok)
	}
	learn := func(address int, p Place) { table.Learn(address, p.String()) }
	assert.Equal(t, "0 false", find(0, 16), "nothing was said")
	learn(0, Place{nodeB, nodeA, 0, 3, 16})
	assert.Equal(t, "0 false", find(3, 16), "the node's address is not known")
	learn(1, Place{nodeB, nodeB, 2, 2, 16})
	assert.Equal(t, []string{"1 true", "1 true", "0 false"}, []string{find(0, 16), find(3, 16), find(4, 16)})
	learn(1, Place{nodeA, nodeB, 3, 3, 16})
	assert.Equal(t, []string{"1 true", "0 true"}, []string{find(2, 16), find(3, 16)}, "another leads")
	learn(2, Place{nodeB, nodeB, 2, 2, 16})
	assert.Equal(t, "2 true", find(0, 16), "the node has another address")
	learn(0, Place{nodeC, nodeA, 0, 0, 32})
	assert.Equal(t, "0 false", find(5, 32), "other slots: all of before is forgotten")
	for i := range 3 * nodesMax {
		learn(0, Place{nodeA, fmt.Sprint(i), 0, 0, 32})
	}
	assert.LessOrEqual(t, len(table.addresses), nodesMax)
	_, ok := table.Find("not an instance")
	assert.False(t, ok)
}

// TestSlotOf holds the formula of gateway/INTERFACE.md, "Which node leads", on ids whose slots it has.
func TestSlotOf(t *testing.T) {
	for id, want := range map[string][3]int{
		"01M7YZAB2GNTJFQE62690KHSQT": {0, 2, 693}, "01JD0000000000000000000001": {0, 14, 3602}, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ": {0, 0, 0},
	} {
		for i, slots := range []int{1, 16, 4096} {
			got, ok := SlotOf(id, slots)
			assert.True(t, ok && got == want[i], "%s in %d: got %d", id, slots, got)
		}
	}
}

// FuzzParse: what is understood is written as it was understood.
func FuzzParse(f *testing.F) {
	f.Add(Place{nodeA, nodeB, 3, 5, 16}.String())
	f.Add(nodeA + ";;=;slots=3-5/16;self=x")
	f.Fuzz(func(t *testing.T, text string) {
		if p, ok := Parse(text); ok {
			again, ok := Parse(p.String())
			assert.True(t, ok && again == p, "%q: got %+v of %+v", text, again, p)
		}
	})
}
