package changefeed

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/actors/failure"
	"troupe/actors/query"
	"troupe/persistence/key"
)

func TestACursorIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places := rapid.SampledFrom([]key.FeedPlace{0, 1, 2, key.FeedPlaceAt(1_800_000_000_000), key.FeedPlaceAt(1_800_000_000_001) + 7, 1<<64 - 1})
		c := Cursor(rapid.SliceOfN(places, 1, 20).Draw(t, "places"))
		got, err := ParseCursor(c.String(), len(c))
		require.True(t, err == nil && slices.Equal(got, c), "got %v and %v, want %v", got, err, c)
		for _, shards := range []int{len(c) - 1, len(c) + 1} {
			_, err := ParseCursor(c.String(), shards)
			require.ErrorIs(t, err, failure.ErrInvalid, "for %d shards", shards)
		}
	})
}

func TestACursorOfAnotherListIsRefused(t *testing.T) {
	for _, text := range []string{"", "0", "x", "AAAA", query.List{"history", "w", "i"}.Cursor([]byte{1}), cursors.Cursor(nil), cursors.Cursor([]byte{0x80}), cursors.Cursor([]byte{1, 3}), cursors.Cursor([]byte{1, 1, 1})} {
		_, err := ParseCursor(text, 1)
		assert.ErrorIs(t, err, failure.ErrInvalid, text)
	}
}

// FuzzParseCursor holds that whatever comes as the position of a cursor is refused, or means what it says.
func FuzzParseCursor(f *testing.F) {
	f.Add([]byte{5, 0, 6})
	f.Add([]byte{0, 1, 0})
	f.Fuzz(func(t *testing.T, position []byte) {
		c, err := ParseCursor(cursors.Cursor(position), 2)
		if err != nil {
			return
		}
		again, err := ParseCursor(c.String(), 2)
		assert.True(t, err == nil && slices.Equal(again, c), "%x: got %v, and again %v with %v", position, c, again, err)
	})
}

// FuzzParseRow holds that any bytes are refused as a row, or are the row that they say.
func FuzzParseRow(f *testing.F) {
	row := Row{ID: key.ID{1}, Sequence: 300, Workflow: "leave"}
	f.Add(append(make([]byte, 8), row.appendValue(nil)...))
	f.Fuzz(func(t *testing.T, stored []byte) {
		key := key.Feed(nil, 3, 9)
		r, err := ParseRow(key, stored)
		if err != nil {
			return
		}
		again, err := ParseRow(key, append(make([]byte, 8), r.appendValue(nil)...))
		assert.True(t, err == nil && again == r && r.Shard == 3 && r.Place == 9, "%x: got %v, and again %v with %v", stored, r, again, err)
	})
}
