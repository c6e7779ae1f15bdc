package persistence

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/persistence/internal/disk"
	"troupe/persistence/internal/file"
)

func FuzzParseFormat(f *testing.F) {
	folder := disk.Folder{FS: vfs.NewMem()}
	written := func(t testing.TB, shards int, replicas bool) []byte {
		must(t, folder.SetFormat(shards, replicas))
		text, err := file.Read(folder.FS, disk.FormatName)
		must(t, err)
		return text
	}
	f.Add(written(f, 16, false))
	f.Add([]byte("troupe store\n"))
	f.Add([]byte("troupe store\nreleased format 1\nshards 1 and more\nreplicas false\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, file.Seal(data)} {
			must(t, file.Replace(folder.FS, folder.Dir, disk.FormatName, data))
			if got, err := folder.Format(); err == nil {
				require.Equal(t, string(data), string(written(t, got.Shards, got.Replicas)), "what parses to %+v is written so", got)
			}
		}
	})
}

func TestAnIDIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := disk.Identity{Folder: disk.Folder{FS: vfs.NewMem()}, File: "id", Own: rapid.StringMatching(`[0-9a-f]{1,40}`).Draw(t, "id")}
		want.Demand(zerolog.Nop())
		got := disk.Identity{Folder: want.Folder, File: want.File}
		require.NoError(t, got.ReadDemand())
		require.Equal(t, want.Own, got.Wanted)
	})
}
