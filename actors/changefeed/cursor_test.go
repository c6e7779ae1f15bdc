package changefeed

import (
	"errors"
	"slices"
	"testing"

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
		if err != nil || !slices.Equal(got, c) {
			t.Fatalf("got %v and %v, want %v", got, err, c)
		}
		for _, shards := range []int{len(c) - 1, len(c) + 1} {
			if _, err := ParseCursor(c.String(), shards); !errors.Is(err, failure.ErrInvalid) {
				t.Fatalf("for %d shards: got %v, want ErrInvalid", shards, err)
			}
		}
	})
}

func TestACursorOfAnotherListIsRefused(t *testing.T) {
	for _, text := range []string{"", "0", "x", "AAAA", query.List{"history", "w", "i"}.Cursor([]byte{1}), cursors.Cursor(nil), cursors.Cursor([]byte{0x80}), cursors.Cursor([]byte{1, 3}), cursors.Cursor([]byte{1, 1, 1})} {
		if _, err := ParseCursor(text, 1); !errors.Is(err, failure.ErrInvalid) {
			t.Errorf("%q: got %v, want ErrInvalid", text, err)
		}
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
		if err != nil || !slices.Equal(again, c) {
			t.Errorf("%x: got %v, and again %v with %v", position, c, again, err)
		}
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
		if err != nil || again != r || r.Shard != 3 || r.Place != 9 {
			t.Errorf("%x: got %v, and again %v with %v", stored, r, again, err)
		}
	})
}
