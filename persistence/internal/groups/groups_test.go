package groups

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// TestACopyTakesNoShardOfAnotherGroup: a group that was divided may be here already when a copy from before comes.
func TestACopyTakesNoShardOfAnotherGroup(t *testing.T) {
	table, own, other := NewTable(4), new(replica.Group), new(replica.Group)
	at := func() (all [5]*replica.Group) {
		for i, sh := range []key.Shard{0, 1, 2, 3, key.Meta} {
			all[i] = table.At(sh).Load()
		}
		return all
	}
	table.At(0).Store(own)
	table.At(2).Store(other)
	for _, test := range []struct {
		last key.Shard
		err  error
	}{{2, replica.ErrOverlap}, {3, replica.ErrOverlap}, {1, nil}} {
		assert.ErrorIs(t, table.Claim(0, test.last), test.err)
	}
	assert.Equal(t, [5]*replica.Group{own, own, other}, at())
	table.Uncover(own, 0)
	assert.Equal(t, [5]*replica.Group{own, nil, other}, at())
	table.Clear(2, 3)
	assert.Equal(t, [5]*replica.Group{own}, at())
}

// told is what an Observer is told, in order.
type told []string

func (o *told) Led(sh key.Shard, epoch uint64) {
	*o = append(*o, "led", string(rune('0'+sh)), string(rune('0'+epoch)))
}

func (o *told) Ended(sh key.Shard, epoch uint64) {
	*o = append(*o, "ended", string(rune('0'+sh)), string(rune('0'+epoch)))
}

// TestAGroupIsLedAtEachOfItsShards: also for who follows later, and also when it has fewer afterwards.
func TestAGroupIsLedAtEachOfItsShards(t *testing.T) {
	var l Leads
	var first, late told
	l.Follow(&first)
	g := l.Of(2)
	g.Led(5, 3)
	g.Ended(5)
	g.Led(6, 2)
	l.Follow(&late)
	g.Ended(6)
	assert.Equal(t, told{"led", "2", "5", "led", "3", "5", "ended", "2", "5", "ended", "3", "5", "led", "2", "6", "ended", "2", "6"}, first)
	assert.Equal(t, told{"led", "2", "6", "ended", "2", "6"}, late)
}
