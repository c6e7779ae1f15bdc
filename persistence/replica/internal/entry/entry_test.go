package entry

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed"
)

// TestAnEntryHasTheSetsThatWereAdded: those of the entry alone, as the room for it is used again; and one that is cut off
// is refused.
func TestAnEntryHasTheSetsThatWereAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sets := rapid.SliceOfN(rapid.StringN(1, 40, 200), 1, 5)
		entries := rapid.SliceOfN(sets, 1, 3).Draw(t, "entries")
		var encoded [][]byte
		var p Packer
		for i, sets := range entries {
			for _, set := range sets {
				p.Add([]byte(set))
			}
			encoded = append(encoded, p.Data(uint64(i), 2, 3))
		}
		for i, data := range encoded {
			var got []string
			e, err := Parse(data)
			if err == nil {
				err = e.Visit(func(set []byte) { got = append(got, string(set)) })
			}
			if err != nil || !slices.Equal(got, entries[i]) {
				t.Fatalf("%q became %q: %v", entries[i], got, err)
			}
			for end := writesHead; end < len(data); end++ {
				if e, err := Parse(data[:end]); err == nil && e.Visit(func([]byte) {}) == nil {
					t.Fatalf("%d of %d bytes are an entry", end, len(data))
				}
			}
		}
	})
}
