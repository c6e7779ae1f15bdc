package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/export"
	"troupe/actors/repository/bucket"
)

func rowAt(at string, n int) export.Row {
	parsed, err := time.Parse(time.RFC3339, at)
	if err != nil {
		panic(err)
	}
	return export.Row{Workflow: "w", Instance: "i", At: parsed, Text: fmt.Appendf(nil, `{"n":%d}`, n)}
}

// inFolder has the files below a folder, with their contents.
func inFolder(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	}))
	return files
}

// TestFilesAreWholeAndNeverReplaced: by hours in UTC, numbered behind those that are there, also of other writers and of
// those that begin at the same time.
func TestFilesAreWholeAndNeverReplaced(t *testing.T) {
	dir := t.TempDir()
	first, second := New(NewFolder(dir), JSONL), New(NewFolder(dir), JSONL)
	rows := []export.Row{
		rowAt("2026-11-21T23:59:59+01:00", 1), rowAt("2026-11-21T23:00:00Z", 2), rowAt("2026-11-21T22:00:00Z", 3), rowAt("2026-11-22T00:00:00Z", 4),
	}
	require.NoError(t, first.Write(t.Context(), rows))
	require.NoError(t, second.Write(t.Context(), rows[1:2]))
	require.NoError(t, first.Write(t.Context(), rows[1:2]))
	assert.Equal(t, map[string]string{
		"2026-11-21/22-000.jsonl": "{\"n\":1}\n{\"n\":3}\n", "2026-11-21/23-000.jsonl": "{\"n\":2}\n", "2026-11-22/00-000.jsonl": "{\"n\":4}\n",
		"2026-11-21/23-001.jsonl": "{\"n\":2}\n", "2026-11-21/23-002.jsonl": "{\"n\":2}\n",
	}, inFolder(t, dir))

	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			assert.NoError(t, New(NewFolder(dir), JSONL).Write(t.Context(), []export.Row{rowAt("2027-01-01T05:00:00Z", n)}))
		})
	}
	all.Wait()
	texts := map[string]bool{}
	for name, text := range inFolder(t, dir) {
		if strings.HasPrefix(name, "2027-01-01/05-00") {
			texts[text] = true
		}
	}
	assert.Len(t, texts, 8, "of eight writers")
}

// TestWhatACrashLeavesIsNoFile, and it goes when it is old.
func TestWhatACrashLeavesIsNoFile(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "2026-11-21")
	require.NoError(t, os.Mkdir(folder, 0o750))
	for _, name := range []string{beginning + "new", beginning + "old"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("{"), 0o600))
	}
	past := time.Now().Add(-2 * leftAfter)
	require.NoError(t, os.Chtimes(filepath.Join(folder, beginning+"old"), past, past))
	require.NoError(t, New(NewFolder(dir), JSONL).Write(t.Context(), []export.Row{rowAt("2026-11-21T10:00:00Z", 1)}))
	files := inFolder(t, dir)
	assert.Len(t, files, 2)
	assert.Equal(t, "{\"n\":1}\n", files["2026-11-21/10-000.jsonl"])

	notAFolder := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(notAFolder, nil, 0o600))
	assert.Error(t, New(NewFolder(notAFolder), JSONL).Write(t.Context(), []export.Row{rowAt("2026-11-21T10:00:00Z", 1)}))
}

// replacing is an object store that does not know If-None-Match.
type replacing struct{ gofakes3.Backend }

func (b replacing) PutObject(bucket, key string, meta map[string]string, in io.Reader, size int64, _ *gofakes3.PutConditions) (gofakes3.PutObjectResult, error) {
	return b.Backend.PutObject(bucket, key, meta, in, size, nil)
}

func bucketOf(t *testing.T, backend gofakes3.Backend) *bucket.Writer {
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	b, err := bucket.Open(bucket.Options{Endpoint: server.URL, Region: "here", Bucket: "lake", Prefix: "of/troupe", AccessKey: "a", SecretKey: "b"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.Close()) })
	return bucket.NewWriter(b)
}

// TestFilesInABucket are as those on a disk. A store that would replace them is refused.
func TestFilesInABucket(t *testing.T) {
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket("lake"))
	rows := []export.Row{rowAt("2026-11-21T10:00:00Z", 1)}
	for range 3 { // each as another writer
		require.NoError(t, New(bucketOf(t, backend), JSONL).Write(t.Context(), rows))
	}
	w := bucketOf(t, backend)
	names, err := w.Names(t.Context(), "2026-11-21")
	require.NoError(t, err)
	slices.Sort(names)
	assert.Equal(t, []string{"10-000.jsonl", "10-001.jsonl", "10-002.jsonl"}, names)
	object, err := backend.GetObject("lake", "of/troupe/2026-11-21/10-002.jsonl", nil)
	require.NoError(t, err)
	text, err := io.ReadAll(object.Contents)
	require.NoError(t, err)
	assert.Equal(t, "{\"n\":1}\n", string(text))
	assert.Equal(t, "s3://lake/of/troupe", w.String())

	other := s3mem.New()
	require.NoError(t, other.CreateBucket("lake"))
	assert.ErrorContains(t, New(bucketOf(t, replacing{other}), JSONL).Write(context.Background(), rows), "in spite of If-None-Match")
	none := bucketOf(t, s3mem.New())
	err = New(none, JSONL).Write(t.Context(), rows)
	assert.True(t, err != nil && !errors.Is(err, os.ErrExist), "a bucket that is not there: %v", err)
}
