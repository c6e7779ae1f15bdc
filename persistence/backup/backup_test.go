package backup

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"troupe/persistence"
	"troupe/persistence/key"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// subject is a home with a store that is open and has instances of one workflow.
type subject struct {
	*testing.T
	dir   string
	store *persistence.Store
	run   *Run
	made  uint64
}

func newSubject(t *testing.T) *subject {
	s := &subject{T: t, dir: t.TempDir()}
	s.write("identity.yaml", "roles: []\n")
	s.write("workflows/order.yaml", "id: order\n")
	s.write("key", "secret")
	require.NoError(t, os.Chmod(filepath.Join(s.dir, "key"), 0o600))
	var err error
	s.store, err = persistence.Open(filepath.Join(s.dir, DataFolder), persistence.Options{MemTableBytes: 64 << 10, CacheBytes: 1 << 20, FreeBytesMin: -1})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.store.Close()) })
	s.run = &Run{Home: s.dir, Program: "test", Checkpoint: func(context.Context) (string, func(), error) {
		dir, err := s.store.Checkpoint()
		return dir, func() { assert.NoError(t, os.RemoveAll(dir)) }, err
	}}
	return s
}

func (s *subject) write(path, text string) {
	path = filepath.Join(s.dir, path)
	require.NoError(s, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)))
}

// work makes n more instances with three entries each, large enough for tables.
func (s *subject) work(n int) {
	for range n {
		s.made++
		var id key.ID
		binary.BigEndian.PutUint64(id[:], s.made)
		sh := s.store.ShardOf(id)
		w := s.store.NewBatch(sh)
		w.Set(key.Record(nil, sh, "order", id), make([]byte, 2000))
		w.Add(key.Count(nil, sh, "order", 1), 1)
		for seq := range uint64(3) {
			w.Set(key.Entry(nil, sh, id, seq), nil)
		}
		require.NoError(s, s.store.Commit(w))
	}
}

// restored brings a backup into a new folder and returns how many instances it has, all of them whole.
func (s *subject) restored(b *Backup) int64 {
	s.Helper()
	dir := s.TempDir()
	require.NoError(s, b.Unpack(s.Context(), dir, false, nil))
	text, err := os.ReadFile(filepath.Join(dir, "workflows/order.yaml"))
	require.NoError(s, err)
	assert.Equal(s, "id: order\n", string(text))
	info, err := os.Stat(filepath.Join(dir, "key"))
	require.NoError(s, err)
	assert.Equal(s, "-rw-------", info.Mode().String())
	store, err := persistence.Open(filepath.Join(dir, DataFolder), persistence.Options{ReadOnly: true})
	require.NoError(s, err)
	defer func() { assert.NoError(s, store.Close()) }()
	_, err = store.Verify(s.Context())
	require.NoError(s, err)
	counts, err := Count(s.Context(), store)
	require.NoError(s, err)
	assert.Empty(s, b.Counts.Differ(counts))
	assert.Equal(s, 3*counts.Instances["order"], counts.History["order"])
	return counts.Instances["order"]
}

func (s *subject) newest(t Target) *Backup {
	s.Helper()
	b, err := Find(s.Context(), t, time.Time{})
	require.NoError(s, err)
	return b
}

func (s *subject) mustAdd(t Target, keep time.Duration) *Report {
	s.Helper()
	report, err := s.run.To(s.Context(), t, keep)
	require.NoError(s, err)
	return report
}

// TestBackups is the life of a folder with backups: increments copy what is new, each moment is kept by itself, and what is
// removed takes its objects with it.
func TestBackups(t *testing.T) {
	s, f := newSubject(t), Folder(filepath.Join(t.TempDir(), "deep", "backups"))
	_, err := Find(t.Context(), f, time.Time{})
	require.ErrorIs(t, err, ErrNoBackup)
	s.work(200)
	var moments []time.Time
	for n := range 4 {
		report := s.mustAdd(f, 0)
		moments = append(moments, report.Index.Moment)
		assert.Equal(t, int64(200+n), report.Index.Counts.Instances["order"])
		if n > 0 {
			assert.Less(t, report.Copied, report.Index.Bytes()/2, "an increment")
		}
		s.work(1)
	}
	for n, moment := range moments {
		for _, at := range []time.Time{moment, moment.Add(time.Microsecond / 2)} {
			b, err := Find(t.Context(), f, at)
			require.NoError(t, err)
			assert.Equal(t, int64(200+n), s.restored(b), "at %s", at)
		}
	}
	for _, at := range []time.Time{moments[0].Add(-time.Microsecond), time.Now().Add(time.Hour)} {
		_, err := Find(t.Context(), f, at)
		assert.ErrorIs(t, err, ErrNoBackup, "at %s", at)
	}

	before, _ := f.List(t.Context())
	report := s.mustAdd(f, time.Nanosecond) // all but the newest, and the one before: it was replaced just now
	after, _ := f.List(t.Context())
	assert.Equal(t, 3, report.Removed)
	assert.Less(t, len(after), len(before))
	assert.Equal(t, int64(204), s.restored(s.newest(f)))
	b, err := Find(t.Context(), f, moments[3])
	require.NoError(t, err)
	assert.Equal(t, int64(203), s.restored(b), "the moment before the newest")

	release, err := f.Lock(t.Context())
	require.NoError(t, err)
	_, err = s.run.To(t.Context(), f, 0)
	require.ErrorIs(t, err, ErrBusy)
	release()
	_, err = newSubject(t).run.To(t.Context(), f, 0)
	require.ErrorContains(t, err, "another store")
	_, err = s.run.To(t.Context(), Folder(s.dir), 0)
	require.ErrorContains(t, err, "files that are not backups")

	s.run.Progress = func(int64, int64) { require.NoError(t, os.RemoveAll(string(f))) }
	_, err = s.run.To(t.Context(), f, 0)
	require.ErrorIs(t, err, fs.ErrNotExist, "a target that somebody removes is not made again without its mark")
	s.run.Progress = nil
	s.mustAdd(f, 0)

	checkpoint := s.run.Checkpoint
	s.run.Checkpoint = func(ctx context.Context) (string, func(), error) {
		dir, done, err := checkpoint(ctx)
		s.run.Progress = func(int64, int64) { done() } // as a server does that stops
		return dir, func() {}, err
	}
	s.work(10)
	_, err = s.run.To(t.Context(), f, 0)
	require.ErrorContains(t, err, "the server of the home stopped or started meanwhile")
	s.run.Progress, s.run.Checkpoint = nil, checkpoint
	s.mustAdd(f, 0)
}

// TestArchives: one file, with what a home has and without what it does not have, and what a killed run leaves.
func TestArchives(t *testing.T) {
	s := newSubject(t)
	s.work(50)
	s.write("repository/report.docx", "words")
	s.write(".git/HEAD", "ref")
	s.write("large.bin", strings.Repeat("x", textBytesMax+1))
	s.write("old.tar.zst", "a backup")
	s.write("lake/of/rows.jsonl", "{}")
	s.run.Without = []string{filepath.Join(s.dir, "lake")}
	s.mustAdd(Folder(filepath.Join(s.dir, "backups")), 0)
	dir := t.TempDir()
	path := filepath.Join(dir, "b.tar.zst")
	left := filepath.Join(dir, ".b.tar.zst.1.part")
	require.NoError(t, os.WriteFile(left, []byte("of a killed run"), 0o600))
	report, err := s.run.ToFile(t.Context(), path)
	require.NoError(t, err)
	assert.Equal(t, []string{"large.bin"}, report.Left)
	assert.NoFileExists(t, left)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, info.Size(), report.Copied)
	assert.Equal(t, "-rw-------", info.Mode().String())
	_, err = s.run.ToFile(t.Context(), path)
	require.ErrorIs(t, err, os.ErrExist)
	b, err := OpenFile(path)
	require.NoError(t, err)
	assert.Equal(t, int64(50), s.restored(b))
	var text []string
	for _, f := range b.Files {
		if !f.isData() {
			text = append(text, f.Path)
		}
	}
	assert.Equal(t, []string{"identity.yaml", "key", "workflows/order.yaml"}, text)
	onlyData := t.TempDir()
	require.NoError(t, b.Unpack(t.Context(), onlyData, true, nil))
	assert.NoFileExists(t, filepath.Join(onlyData, "identity.yaml"))
	assert.FileExists(t, filepath.Join(onlyData, DataFolder, "FORMAT"))

	one, err := os.ReadFile(path)
	require.NoError(t, err)
	two := filepath.Join(t.TempDir(), "two.tar.zst")
	require.NoError(t, os.WriteFile(two, slices.Concat(one, one), 0o600))
	require.ErrorIs(t, check(t.Context(), two), ErrDamaged, "a whole backup follows")

	s.run.Needs = "missing.yaml"
	_, err = s.run.ToFile(t.Context(), filepath.Join(dir, "n.tar.zst"))
	require.ErrorContains(t, err, "has no missing.yaml")
	s.run.Needs = "identity.yaml"

	s.run.Repository = true
	_, err = s.run.ToFile(t.Context(), filepath.Join(dir, "r.tar.zst"))
	require.NoError(t, err)
	b, err = OpenFile(filepath.Join(dir, "r.tar.zst"))
	require.NoError(t, err)
	assert.True(t, slices.ContainsFunc(b.Files, func(f File) bool { return f.Path == "repository/report.docx" }))

	ctx, cancel := context.WithCancel(t.Context())
	s.run.Progress = func(int64, int64) { cancel() }
	_, err = s.run.ToFile(ctx, filepath.Join(dir, "cancelled"))
	require.ErrorIs(t, err, context.Canceled)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 2, "nothing of the interrupted one stays")
}

// TestTheTextOfTheMoment: text files that change during the checkpoint are read again with another one.
func TestTheTextOfTheMoment(t *testing.T) {
	s := newSubject(t)
	checkpoint, n := s.run.Checkpoint, 0
	s.run.Checkpoint = func(ctx context.Context) (string, func(), error) {
		if n++; n < 3 {
			s.write("workflows/order.yaml", fmt.Sprint(n))
		}
		return checkpoint(ctx)
	}
	f := Folder(t.TempDir())
	s.mustAdd(f, 0)
	assert.Equal(t, 3, n)
	s.run.Checkpoint = func(ctx context.Context) (string, func(), error) {
		n++
		s.write("workflows/order.yaml", fmt.Sprint(n))
		return checkpoint(ctx)
	}
	_, err := s.run.To(t.Context(), f, 0)
	require.ErrorContains(t, err, "change all the time")
}

var errKilled = errors.New("killed")

// mortal is a folder whose user is killed at a call: what it was doing stays half done, and nothing comes after it.
type mortal struct {
	Folder
	left int // calls until then
}

func (m *mortal) call() error {
	m.left--
	if m.left < 0 {
		return errKilled
	}
	return nil
}

func (m *mortal) Put(ctx context.Context, name string, size int64, content io.Reader) error {
	if err := m.call(); err != nil {
		part := filepath.Join(string(m.Folder), partFolder, "half")
		f, err := os.Create(part)
		if err == nil {
			_, err = io.CopyN(f, content, size/2)
		}
		return errors.Join(err, f.Close(), errKilled)
	}
	return m.Folder.Put(ctx, name, size, content)
}

func (m *mortal) Remove(ctx context.Context, name string) error {
	if err := m.call(); err != nil {
		return err
	}
	return m.Folder.Remove(ctx, name)
}

// TestABackupThatIsCutAnywhere holds persistence/PROMISES.md, "P32: A backup has what was acknowledged": a run that is
// killed at any of its changes, the first one or a later one that removes old backups, leaves whole backups and nothing else
// that a restore reads; the next run needs no help, and takes away what was left.
func TestABackupThatIsCutAnywhere(t *testing.T) {
	s := newSubject(t)
	s.work(80)
	series := Folder(t.TempDir())
	for what, target := range map[string]func() Folder{
		"the first backup": func() Folder { return Folder(t.TempDir()) },
		"an increment that removes old ones": func() Folder {
			s.mustAdd(series, 0)
			s.mustAdd(series, 0)
			s.work(1)
			return series
		},
	} {
		calls := 0
		for ended := false; !ended; calls++ {
			f := target()
			_, err := s.run.To(t.Context(), &mortal{f, calls}, time.Nanosecond)
			ended = err == nil
			if !ended {
				require.ErrorIs(t, err, errKilled, "%s, call %d", what, calls)
			}
			names, err := f.List(t.Context())
			require.NoError(t, err)
			for _, name := range moments(names) {
				index, err := readIndex(t.Context(), f, name)
				require.NoError(t, err)
				require.NoError(t, (&Backup{index, stored{f}}).each(t.Context(), drain), "%s: %s after call %d", what, name, calls)
			}
			s.mustAdd(f, 0)
			parts, err := os.ReadDir(f.path(partFolder))
			assert.True(t, err == nil && len(parts) == 0, "half a file stayed: %v, %v", parts, err)
			assertNamed(t, f)
		}
		assert.Greater(t, calls, 10, what)
	}
	assert.Equal(t, int64(s.made), s.restored(s.newest(series)))
}

// assertNamed: there is no object that no backup names.
func assertNamed(t *testing.T, f Folder) {
	t.Helper()
	names, err := f.List(t.Context())
	require.NoError(t, err)
	for _, name := range moments(names) {
		index, err := readIndex(t.Context(), f, name)
		require.NoError(t, err)
		for _, of := range index.Files {
			delete(names, of.object())
		}
		delete(names, name)
	}
	assert.Empty(t, slices.Collect(maps.Keys(names)))
}

// TestAnyDamageIsRefused holds persistence/PROMISES.md, "P32: A backup has what was acknowledged": a byte that is another
// one, or missing, in any file of a backup, is found when it is restored, and the error names the file.
func TestAnyDamageIsRefused(t *testing.T) {
	s, f, archive := newSubject(t), Folder(t.TempDir()), filepath.Join(t.TempDir(), "b.tar.zst")
	s.work(80)
	s.mustAdd(f, 0)
	_, err := s.run.ToFile(t.Context(), archive)
	require.NoError(t, err)
	whole, _ := f.List(t.Context())
	right := filepath.Join(t.TempDir(), "right")
	written, err := OpenFile(archive)
	require.NoError(t, err)
	require.NoError(t, written.Unpack(t.Context(), right, false, nil))
	files := []string{archive}
	for name, size := range whole {
		if size > 0 { // there is one empty object
			files = append(files, f.path(name))
		}
	}
	require.Greater(t, len(files), 8)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		size := len(text)
		for _, at := range []int{0, size / 3, size / 2, size - 1} {
			for what, damaged := range map[string][]byte{
				"flipped": slices.Concat(text[:at], []byte{text[at] ^ 4}, text[at+1:]), "cut": text[:at], "longer": append(slices.Clone(text), text[at]),
			} {
				require.NoError(t, os.WriteFile(path, damaged, 0o600))
				var b *Backup
				if path == archive {
					b, err = OpenFile(path)
				} else {
					b, err = Find(t.Context(), f, time.Time{})
				}
				dir := t.TempDir()
				if err == nil {
					err = b.Unpack(t.Context(), dir, false, nil)
				}
				assert.True(t, path != archive || isClosed(b), "the file of %s at %d is open still", what, at)
				if path == archive && what == "flipped" && err == nil { // zstd pads its tables with bits that say nothing
					assertSameFiles(t, right, dir)
					continue
				}
				assert.True(t, errors.Is(err, ErrDamaged) || errors.Is(err, ErrNoBackup), "%s at %d of %d of %s: %v", what, at, size, path, err)
				if err != nil {
					assert.Contains(t, err.Error(), filepath.Base(path))
				}
			}
		}
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
	for name := range whole {
		require.NoError(t, os.Rename(f.path(name), f.path(name)+".gone"))
		b, err := Find(t.Context(), f, time.Time{})
		if err == nil {
			err = b.Unpack(t.Context(), t.TempDir(), false, nil)
		}
		assert.Error(t, err, "%s is missing", name)
		require.NoError(t, os.Rename(f.path(name)+".gone", f.path(name)))
	}
	assert.Equal(t, int64(80), s.restored(s.newest(f)))

	first := s.newest(f)
	s.work(1)
	s.mustAdd(f, 0)
	n, err := CheckAll(t.Context(), f)
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	second, of := s.newest(f), f.path(s.newest(f).name())
	text, err := os.ReadFile(of)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(of, text[1:], 0o600))
	_, err = Find(t.Context(), f, time.Time{})
	require.ErrorIs(t, err, ErrDamaged)
	assert.ErrorContains(t, err, "--at "+shownTime(first.Moment.Add(time.Second-1)))
	require.NoError(t, os.WriteFile(of, text, 0o600))
	old := slices.IndexFunc(first.Files, func(f File) bool { return f.Bytes > 0 && !slices.Contains(second.Files, f) })
	object := f.path(first.Files[old].object())
	require.NoError(t, os.Remove(object))
	require.NoError(t, syscall.Mkfifo(object, 0o600))
	assert.Equal(t, int64(81), s.restored(s.newest(f)))
	_, err = CheckAll(t.Context(), f)
	require.ErrorIs(t, err, ErrDamaged, "in the first of the two alone")
	assert.ErrorContains(t, err, "not a regular file")
}

func assertSameFiles(t *testing.T, want, got string) {
	t.Helper()
	contents := func(dir string) map[string]string {
		of := map[string]string{}
		require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				text, readErr := os.ReadFile(filepath.Join(dir, path))
				of[path], err = string(text), readErr
			}
			return err
		}))
		return of
	}
	assert.Equal(t, contents(want), contents(got))
}

// TestABackupThatNobodyWrote: an index with a right sum may come from anybody. What no backup has is refused before anything
// is written, and an index of any size does not fill the memory.
func TestABackupThatNobodyWrote(t *testing.T) {
	for path, want := range map[string]bool{
		"identity.yaml": true, "workflows/order.yaml": true, "data/000001.sst": true, "repository/a/b": true,
		"/etc/passwd": false, "../x": false, "..x/y": false, "a/../b": false, "": false, "data": false, "data/cluster/id": false, "repository": false,
		".git/hooks/post-checkout": false, ".store": false, "admin.sock": false, "twice": false,
	} {
		i := &Index{Format: format, Files: []File{{Path: path, SHA256: strings.Repeat("0", 64)}}}
		if path == "twice" {
			i.Files = append(i.Files, i.Files[0])
		}
		text, err := i.encode()
		require.NoError(t, err)
		_, err = parseIndex("index", bytes.NewReader(text))
		assert.Equal(t, want, err == nil, "%q: %v", path, err)
	}
	_, err := parseIndex("index", endless{})
	require.ErrorIs(t, err, ErrDamaged)
}

// endless is a text without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func isClosed(b *Backup) bool { return b.from.(*archive).file == nil }
