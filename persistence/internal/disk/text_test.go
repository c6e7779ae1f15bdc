package disk

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/persistence/internal/file"
)

func FuzzParseFormat(f *testing.F) {
	f.Add(Format{Version: 1, Shards: 16}.encode())
	f.Add([]byte("troupe store\n"))
	f.Add([]byte("troupe store\nreleased format 1\nshards 1 and more\nreplicas false\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, file.Seal(data)} {
			if got, err := parseFormat(data); err == nil && string(got.encode()) != string(data) {
				t.Errorf("%q parses to %+v, which is written as %q", data, got, got.encode())
			}
		}
	})
}

func TestAnIDIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.StringMatching(`[0-9a-f]{1,40}`).Draw(t, "id")
		got, err := parseID(encodeID(want))
		require.True(t, err == nil && got == want, "got %q, %v, want %q", got, err, want)
	})
}
