package integrity

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed"
	"troupe/persistence/internal/file"
)

func drawCheckpoint(t *rapid.T) *checkpoint {
	w := &checkpoint{
		clean:         rapid.Bool().Draw(t, "clean"),
		owner:         rapid.StringMatching(`[0-9a-f]{1,32}`).Draw(t, "owner"),
		manifest:      rapid.StringMatching(`MANIFEST-[0-9]{6}`).Draw(t, "manifest"),
		manifestBytes: rapid.Int64Min(0).Draw(t, "bytes"),
		manifestSum:   rapid.Uint32().Draw(t, "sum"),
		watermark:     watermark{log: rapid.Uint64().Draw(t, "log"), seq: rapid.Uint64().Draw(t, "seq")},
	}
	for range rapid.IntRange(0, 3).Draw(t, "logs") {
		w.logs = append(w.logs, logSize{rapid.Uint64().Draw(t, "log"), rapid.Int64Min(0).Draw(t, "size")})
	}
	for range rapid.IntRange(0, 3).Draw(t, "tables") {
		w.tables = append(w.tables, tableSum{
			rapid.Uint64().Draw(t, "table"), rapid.Int64Min(0).Draw(t, "size"), rapid.Uint32().Draw(t, "tail"),
		})
	}
	return w
}

func TestACheckpointIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawCheckpoint(t)
		got, err := parseCheckpoint(want.encode())
		must(t, err)
		require.True(t, string(got.encode()) == string(want.encode()) && slices.Equal(got.logs, want.logs) && slices.Equal(got.tables, want.tables), "%v %v", got, want)
	})
}

func TestAnAlteredCheckpointIsNotRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := drawCheckpoint(t).encode()
		switch rapid.IntRange(0, 1).Draw(t, "how") {
		case 0:
			data[rapid.IntRange(0, len(data)-1).Draw(t, "offset")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case 1:
			data = data[:rapid.IntRange(0, len(data)-1).Draw(t, "length")]
		}
		w, err := parseCheckpoint(data)
		require.Error(t, err, "%q was read as %+v", data, w)
	})
}

func FuzzParseCheckpoint(f *testing.F) {
	w := checkpoint{owner: "a", manifest: "MANIFEST-000001", logs: []logSize{{2, 3}}, tables: []tableSum{{4, 5, 6}}}
	f.Add(w.encode())
	text, _ := file.Unseal(w.encode())
	f.Add(slices.Clone(text))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, file.Seal(slices.Clone(data))} {
			w, err := parseCheckpoint(data)
			if err != nil {
				continue
			}
			again, err := parseCheckpoint(w.encode())
			assert.True(t, err == nil && string(again.encode()) == string(w.encode()), "%q parses to %+v, which is read back as %+v, %v", data, w, again, err)
		}
	})
}
