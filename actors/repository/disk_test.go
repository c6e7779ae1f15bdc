package repository_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/repository"
	"troupe/actors/repository/disk"
	"troupe/actors/repository/sourcetest"
)

// folder is a disk's folder, and the editor of it.
type folder string

func (f folder) at(path string) string { return filepath.Join(string(f), filepath.FromSlash(path)) }

func (f folder) Put(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(f.at(file)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(f.at(file), []byte(text), 0o644)
}

func (f folder) Remove(path string) error { return os.RemoveAll(f.at(path)) }

func (f folder) Rename(from, to string) error { return os.Rename(f.at(from), f.at(to)) }

func newDisk(t testing.TB, o disk.Options) (*disk.Disk, folder) {
	t.Helper()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "repository")
		require.NoError(t, os.Mkdir(o.Dir, 0o755))
	}
	o.Log = zerolog.Nop()
	d, err := disk.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, d.Close())
	})
	return d, folder(o.Dir)
}

func TestDiskIsASource(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) (repository.Source, sourcetest.Editor) { return newDisk(t, disk.Options{}) })
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	require.NoError(t, errors.Join(errs...))
}

// TestOnlyRegularFiles holds gateway/INTERFACE.md, "What is never listed", and what
// follows of persistence/PROMISES.md, "F13": only a regular file under its own name
// is listed and opened.
func TestOnlyRegularFiles(t *testing.T) {
	d, f := newDisk(t, disk.Options{})
	outside := folder(t.TempDir())
	must(t, outside.Put("/secret.rml", "secret"), f.Put("/in/a.rml", "a"), f.Put("/a.rml", "a"))
	must(t,
		os.Symlink(outside.at("/secret.rml"), f.at("/out.rml")),
		os.Symlink("a.rml", f.at("/link.rml")),
		os.Symlink("missing", f.at("/dangling.rml")),
		os.Symlink("loop.rml", f.at("/loop.rml")),
		os.Symlink(string(outside), f.at("/outside")),
		os.Symlink("in", f.at("/inside")),
		os.Symlink(".", f.at("/here")),
		os.Symlink("..", f.at("/above")),
		syscall.Mkfifo(f.at("/pipe.rml"), 0o644),
		os.Mkdir(f.at("/folder.rml"), 0o755),
	)
	listener, err := net.Listen("unix", f.at("/socket.rml"))
	if err == nil { // the path may be too long for a socket
		defer func() { _ = listener.Close() }()
	}
	l, err := d.List(t.Context(), "/")
	must(t, err)
	slices.Sort(l.Folders)
	assert.Equal(t, "[a.rml] [folder.rml in]", fmt.Sprint(l.Files, l.Folders))
	for _, path := range []string{
		"/out.rml", "/link.rml", "/dangling.rml", "/loop.rml", "/outside", "/outside/secret.rml", "/inside", "/inside/a.rml", "/here/a.rml",
		"/here/here/a.rml", "/above/repository/a.rml", "/pipe.rml", "/pipe.rml/a", "/folder.rml", "/socket.rml",
	} {
		file, err := d.Open(t.Context(), path)
		assert.ErrorIs(t, err, fs.ErrNotExist, "open %s: got %v", path, file)
	}
	for _, path := range []string{"/outside", "/inside", "/here", "/above", "/here/in", "/pipe.rml", "/a.rml", "/loop.rml"} {
		l, err := d.List(t.Context(), path)
		assert.ErrorIs(t, err, fs.ErrNotExist, "list %s: got %+v", path, l)
	}
}

// TestOnlyOneNameUnlessOurs: a hard link may lead out of the repository
// (persistence/PROMISES.md, "F13").
func TestOnlyOneNameUnlessOurs(t *testing.T) {
	d, f := newDisk(t, disk.Options{})
	must(t, f.Put("/a.rml", "a"), os.Link(f.at("/a.rml"), f.at("/b.rml")))
	if file, err := d.Open(t.Context(), "/b.rml"); err != nil {
		t.Errorf("a second name of a file of the repository's owner: %v", err)
	} else {
		_ = file.Close()
	}
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	must(t, os.Chown(f.at("/a.rml"), 12345, 12345))
	for _, path := range []string{"/a.rml", "/b.rml"} {
		file, err := d.Open(t.Context(), path)
		assert.ErrorIs(t, err, fs.ErrNotExist, "open %s of somebody else: got %v", path, file)
	}
	must(t, os.Remove(f.at("/b.rml")))
	if file, err := d.Open(t.Context(), "/a.rml"); err != nil {
		t.Errorf("the only name of a file of somebody else: %v", err)
	} else {
		_ = file.Close()
	}
}

// TestUnreadable is about what the server itself may not read.
func TestUnreadable(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads everything")
	}
	d, f := newDisk(t, disk.Options{})
	must(t, f.Put("/closed.rml", "x"), f.Put("/d/a.rml", "x"), f.Put("/names/a.rml", "x"))
	must(t, os.Chmod(f.at("/closed.rml"), 0), os.Chmod(f.at("/d"), 0), os.Chmod(f.at("/names"), 0o100))
	defer func() { must(t, os.Chmod(f.at("/d"), 0o700), os.Chmod(f.at("/names"), 0o700)) }()
	for _, path := range []string{"/closed.rml", "/d/a.rml"} {
		file, err := d.Open(t.Context(), path)
		assert.ErrorIs(t, err, fs.ErrPermission, "open %s: got %v", path, file)
	}
	for _, path := range []string{"/d", "/names"} {
		l, err := d.List(t.Context(), path)
		assert.ErrorIs(t, err, fs.ErrPermission, "list %s: got %v", path, l)
	}
	l, err := d.List(t.Context(), "/")
	assert.True(t, err == nil && len(l.Files) == 1 && len(l.Folders) == 2, "list /: got %+v and %v, want all names", l, err)
}

func TestFilesAreBounded(t *testing.T) {
	d, f := newDisk(t, disk.Options{FileBytesMax: 10})
	must(t, f.Put("/small", "0123456789"), f.Put("/large", "0123456789x"))
	file, err := d.Open(t.Context(), "/small")
	must(t, err)
	_ = file.Close()
	file, err = d.Open(t.Context(), "/large")
	assert.ErrorIs(t, err, failure.ErrTooLarge, "got %v", file)
}

// TestNamesThatHaveNoPathAreLeftOut holds gateway/INTERFACE.md,
// "The path of a template", and actors/repository/DESIGN.md, "What is in memory".
func TestNamesThatHaveNoPathAreLeftOut(t *testing.T) {
	d, f := newDisk(t, disk.Options{})
	must(t, f.Put("/a.rml", "a"))
	left := 0
	for _, name := range []string{"a\xff.rml", "line\nend.rml", "tab\t.rml", "\x7f.rml", "\u0085.rml"} {
		if os.WriteFile(string(f)+"/"+name, nil, 0o644) == nil { // some file systems refuse them
			left++
		}
	}
	if os.Mkdir(string(f)+"/folder\xff", 0o755) == nil {
		left++
	}
	l, err := d.List(t.Context(), "/")
	must(t, err)
	assert.True(t, len(l.Files) == 1 && len(l.Folders) == 0 && l.Left == left, "got %q, %q and %d left out, want a.rml and %d left out", l.Files, l.Folders, l.Left, left)
}

// TestSwapping opens a path while somebody replaces the file, and the folders on
// the way, by links to a secret, pipes, and other folders (a race between check
// and use). The secret is never read, and nobody waits.
func TestSwapping(t *testing.T) {
	d, f := newDisk(t, disk.Options{})
	outside := folder(t.TempDir())
	must(t, outside.Put("/a.rml", "secret"), outside.Put("/d/a.rml", "secret"), f.Put("/hidden/a.rml", "secret"), f.Put("/d/a.rml", "open"), f.Put("/d2/a.rml", "open"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	var reads, misses atomic.Int64
	all.Go(func() { // the swapper
		defer cancel()
		path, aside := f.at("/d"), f.at("/aside")
		file := f.at("/d/a.rml")
		// However busy the machine is, the readers meet what was swapped, and what was not.
		for rounds := 0; rounds < 100 || reads.Load() < 30 || misses.Load() < 30; rounds++ {
			for _, make := range []func() error{
				func() error { return os.Symlink(string(outside), path) },
				func() error { return os.Symlink("hidden", path) },
				func() error { return syscall.Mkfifo(path, 0o644) },
			} {
				if !assert.NoError(t, errors.Join(os.Rename(path, aside), make(), os.Remove(path), os.Rename(aside, path))) {
					return
				}
			}
			for _, make := range []func() error{
				func() error { return os.Symlink(outside.at("/a.rml"), file) },
				func() error { return os.Symlink("../hidden/a.rml", file) },
				func() error { return syscall.Mkfifo(file, 0o644) },
			} {
				if !assert.NoError(t, errors.Join(os.Remove(file), make(), os.Remove(file), os.WriteFile(file, []byte("open"), 0o644))) {
					return
				}
			}
		}
	})
	for range 3 {
		all.Go(func() {
			for ctx.Err() == nil {
				file, err := d.Open(context.Background(), "/d/a.rml")
				if err != nil {
					misses.Add(1)
					continue
				}
				text, err := io.ReadAll(io.NewSectionReader(file, 0, 100))
				_ = file.Close()
				got := string(text)
				if !assert.True(t, err == nil && (got == "open" || got == ""), "got %q and %v", got, err) {
					return
				}
				reads.Add(1)
			}
		})
		all.Go(func() {
			for ctx.Err() == nil {
				l, err := d.List(context.Background(), "/d")
				if !assert.False(t, err == nil && len(l.Folders) > 0, "another folder was listed: %+v", l) {
					return
				}
			}
		})
	}
	all.Wait()
}

// TestAFileThatIsReplacedIsThere, each time, as editors replace files.
func TestAFileThatIsReplacedIsThere(t *testing.T) {
	d, f := newDisk(t, disk.Options{})
	must(t, f.Put("/a.rml", "x"))
	const editors = 9 // Open tries ten times
	for range 100 {
		var all sync.WaitGroup
		for n := range editors {
			name := fmt.Sprintf("/new%d", n)
			all.Go(func() { must(t, f.Put(name, "x"), f.Rename(name, "/a.rml")) })
		}
		file, err := d.Open(t.Context(), "/a.rml")
		if err != nil {
			t.Error(err)
		} else {
			_ = file.Close()
		}
		all.Wait()
	}
}

// starved calls do while the process has only so many free file descriptors left.
func starved(t *testing.T, left uint64, do func()) {
	next, err := os.Open(os.DevNull)
	must(t, err)
	free := uint64(next.Fd())
	must(t, next.Close())
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: free + left, Max: limit.Max}))
	do()
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
}

// TestTooManyOpenFiles holds that a process without free file descriptors answers
// ErrUnavailable, and not that the file is missing.
func TestTooManyOpenFiles(t *testing.T) {
	d, f := newDisk(t, disk.Options{})
	must(t, f.Put("/d/a.rml", "x"))
	for left := range uint64(3) { // how far it gets
		starved(t, left, func() {
			file, err := d.Open(t.Context(), "/d/a.rml")
			if file != nil {
				_ = file.Close()
			}
			assert.ErrorIs(t, err, failure.ErrUnavailable, "with %d left", left)
		})
	}
}

// TestSwappingControl shows that the race is one: os.Root alone follows links
// that stay inside.
func TestSwappingControl(t *testing.T) {
	_, f := newDisk(t, disk.Options{})
	must(t, f.Put("/hidden/a.rml", "secret"), os.Symlink("hidden", f.at("/d")))
	root, err := os.OpenRoot(string(f))
	must(t, err)
	defer func() { _ = root.Close() }()
	text, err := root.ReadFile("d/a.rml")
	assert.True(t, err == nil && string(text) == "secret", "got %q and %v: then enter needs to do less", text, err)
}

// TestChangesAreSeen holds what the conformance suite cannot do on other sources: links,
// folders in the place of others, and a repository that comes, goes and is replaced.
func TestChangesAreSeen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repository")
	d, f := newDisk(t, disk.Options{Dir: dir})
	_, err := d.List(t.Context(), "/")
	assert.ErrorIs(t, err, fs.ErrNotExist, "a repository that is missing")
	next := folder(dir + ".next")
	sourcetest.Follow(t, d, []sourcetest.Step{
		{What: "a repository that comes", Do: func() error { return f.Put("/a.rml", "") }, Want: "/a.rml"},
		{What: "new folders", Do: func() error { return errors.Join(f.Put("/z/y/b.rml", ""), f.Put("/n/y/c.rml", "")) }, Want: "/a.rml /n/y/c.rml /z/y/b.rml"},
		{What: "a folder in another's place", Do: func() error { return errors.Join(f.Rename("/z", "/old"), f.Rename("/n", "/z"), f.Remove("/old")) }, Want: "/a.rml /z/y/c.rml"},
		{What: "a file in that", Do: func() error { return f.Put("/z/y/d.rml", "") }, Want: "/a.rml /z/y/c.rml /z/y/d.rml"},
		{What: "a file in a folder's place", Do: func() error { return errors.Join(f.Remove("/z"), f.Put("/z", "")) }, Want: "/a.rml"},
		{What: "a link", Do: func() error { return os.Symlink("a.rml", f.at("/l.rml")) }, Want: "/a.rml"},
		{What: "a file in the link's place", Do: func() error { return errors.Join(f.Remove("/l.rml"), f.Put("/l.rml", "")) }, Want: "/a.rml /l.rml"},
		{What: "a repository that goes", Do: func() error { return os.RemoveAll(dir) }},
		{What: "another repository", Do: func() error { return f.Put("/n/e.rml", "") }, Want: "/n/e.rml"},
		{What: "a repository in its place", Do: func() error {
			return errors.Join(next.Put("/n/f.rml", ""), os.Rename(dir, dir+".old"), os.Rename(string(next), dir))
		}, Want: "/n/f.rml"},
		{What: "a file in that one", Do: func() error { return f.Put("/n/g.rml", "") }, Want: "/n/f.rml /n/g.rml"},
	})
}

// TestWithoutNotice: where the system gives none, everything else works.
func TestWithoutNotice(t *testing.T) {
	var d *disk.Disk
	var f folder
	starved(t, 0, func() { d, f = newDisk(t, disk.Options{Dir: t.TempDir()}) })
	must(t, f.Put("/a.rml", "a"))
	l, err := d.List(t.Context(), "/")
	assert.True(t, err == nil && l.Unwatched && len(l.Files) == 1, "got %+v and %v, want one file in an unwatched folder", l, err)
	assert.ErrorContains(t, d.Watch(t.Context(), func(repository.Change) {}), "the system gives no notice of changes")
	must(t, d.Close())
}
