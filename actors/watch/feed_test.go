package watch

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/puzpuzpuz/xsync/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
)

// TestAllFeedsTogetherAreBounded, also those that nobody watches: the oldest
// items go, and the newest is always kept.
func TestAllFeedsTogetherAreBounded(t *testing.T) {
	fs := &feeds{byKey: xsync.NewMap[feedKey, *Feed]()}
	big := data.Value(bytes.Repeat([]byte("x"), 1<<20))
	begun := time.Now()
	var all []*Feed
	for n := range 100 {
		f := fs.join(feedKey{workflow: fmt.Sprint(n)})
		if n%2 == 0 {
			fs.leave(f, begun)
		}
		all = append(all, f)
	}
	for round := range 3 {
		for n, f := range all {
			f.Publish(&Item{Entry: big})
			require.LessOrEqual(t, fs.bytes, feedsBytesMax, "bytes are kept")
			items, _, _, _ := f.read(nil, uint64(round))
			require.Len(t, items, 1, "feed %d", n)
		}
	}
	kept := 0
	for n, f := range all {
		items, next, lost, _ := f.read(nil, 2)
		assert.True(t, next == 3 && lost == (len(items) == 0), "feed %d: %d items, next %d, lost %v", n, len(items), next, lost)
		kept += len(items)
	}
	assert.True(t, kept == 63 && fs.ages.Len() == kept, "%d items of 1 MiB are kept and %d counted, want 63", kept, fs.ages.Len())
	all[99].Publish(&Item{Entry: bytes.Repeat(big, 65)})
	items, _, _, _ := all[99].read(nil, 3)
	assert.True(t, len(items) == 1 && fs.ages.Len() == 1, "an item that is too large: %d items of %d, want it alone", len(items), fs.ages.Len())
	fs.sweep(begun.Add(2 * feedKeptFor))
	all[0].Publish(&Item{Entry: big}) // by a commit that knew it before
	if fs.byKey.Size() != 50 || fs.ages.Len() != 1 || len(all[0].items) != 0 {
		t.Errorf("%d feeds and %d items are left, want 50 and 1: a feed that was forgotten keeps nothing", fs.byKey.Size(), fs.ages.Len())
	}
	for n, f := range all {
		if n%2 == 1 {
			fs.leave(f, begun)
		}
	}
	fs.sweep(begun.Add(2 * feedKeptFor))
	assert.True(t, fs.bytes == 0 && fs.ages.Len() == 0, "%d bytes and %d items are counted when all feeds are gone", fs.bytes, fs.ages.Len())
}

// TestAWatcherTakesLittleAtATime: what it holds is not in its feed any more.
func TestAWatcherTakesLittleAtATime(t *testing.T) {
	f := newFeed(feedKey{workflow: "w"}, &feeds{})
	for range 9 {
		f.Publish(&Item{Entry: bytes.Repeat([]byte("x"), 100<<10)})
	}
	items, next, _, _ := f.read(nil, 1)
	assert.True(t, len(items) == 2 && next == 3, "%d items of 100 KiB up to %d, want 2 up to 3", len(items), next)
}

func TestAFeedIsBoundedInBytes(t *testing.T) {
	f := newFeed(feedKey{workflow: "w"}, &feeds{})
	big := data.Value(bytes.Repeat([]byte("x"), 1<<20))
	for range 100 {
		f.Publish(&Item{Entry: big})
	}
	_, _, lost, _ := f.read(nil, 0)
	assert.True(t, len(f.items) <= 8 && len(f.items) >= 7 && lost, "%d items of 1 MiB are kept, lost %v; want as many as fit", len(f.items), lost)
	f.Publish(&Item{Entry: bytes.Repeat([]byte("x"), feedBytesMax+1)})
	items, next, lost, _ := f.read(nil, 100)
	assert.True(t, len(items) == 1 && next == 101 && !lost, "an item that is too large: %d items, next %d, lost %v; want it alone", len(items), next, lost)
}
