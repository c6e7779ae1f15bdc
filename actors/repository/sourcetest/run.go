// Package sourcetest tests sources of a repository: Run is the conformance suite of
// repository.Source, and Memory is a source in memory.
package sourcetest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors"
	"troupe/actors/identity"
	"troupe/actors/repository"
)

// Editor changes the files behind a source, as their owners do.
type Editor interface {
	// Put writes a file, with the folders above it.
	Put(file, text string) error
	// Remove removes a file, or a folder with everything in it.
	Remove(path string) error
	// Rename gives a file or a folder another path, in a folder that exists.
	Rename(from, to string) error
}

// Run checks a source. open returns one with an empty repository, and the editor of what is in it; it is called for
// each test, and ends the source with the test.
func Run(t *testing.T, open func(t *testing.T) (repository.Source, Editor)) {
	for _, c := range []struct {
		promise string
		check   func(t *testing.T, s *subject)
	}{
		{"a folder is listed, each name once", listsFolders},
		{"names are kept as they are", keepsNames},
		{"what is not there is fs.ErrNotExist", isNotThere},
		{"only canonical paths are paths", takesCanonicalPaths},
		{"a file is read at any place", readsFiles},
		{"an opened file stays as large as it was", keepsSize},
		{"another content has another identity", identifies},
		{"a file can be read by many", readsConcurrently},
		{"changes of listed folders are told", tellsChanges},
		{"a context that ends ends Watch", endsWatch},
	} {
		t.Run(c.promise, func(t *testing.T) {
			source, editor := open(t)
			c.check(t, &subject{t, source, editor})
		})
	}
}

type subject struct {
	t      *testing.T
	source repository.Source
	edit   Editor
}

func (s *subject) put(file, text string) {
	s.t.Helper()
	require.NoError(s.t, s.edit.Put(file, text), "put %s", file)
}

func (s *subject) wantList(folder, files, folders string) {
	s.t.Helper()
	l, err := s.source.List(s.t.Context(), folder)
	require.NoError(s.t, err, "list %s", folder)
	slices.Sort(l.Files)
	slices.Sort(l.Folders)
	assert.Equal(s.t, files, strings.Join(l.Files, "|"), "files of %s", folder)
	assert.Equal(s.t, folders, strings.Join(l.Folders, "|"), "folders of %s", folder)
	assert.Zero(s.t, l.Left, "names left out of %s", folder)
}

func (s *subject) open(file string) *repository.File {
	s.t.Helper()
	f, err := s.source.Open(s.t.Context(), file)
	require.NoError(s.t, err, "open %s", file)
	s.t.Cleanup(func() { assert.NoError(s.t, f.Close(), "close %s", file) })
	return f
}

func (s *subject) read(f *repository.File) string {
	s.t.Helper()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<40))
	require.NoError(s.t, err, "read %s", f.Identity().Path)
	return string(text)
}

func (s *subject) remove(path string) {
	s.t.Helper()
	require.NoError(s.t, s.edit.Remove(path), "remove %s", path)
}

// misses wants no file at any of the paths.
func (s *subject) misses(files ...string) {
	s.t.Helper()
	for _, file := range files {
		f, err := s.source.Open(s.t.Context(), file)
		assert.ErrorIs(s.t, err, fs.ErrNotExist, "open %q: got %v", file, f)
	}
}

func listsFolders(t *testing.T, s *subject) {
	s.wantList("/", "", "")
	for _, file := range []string{"/b.rml", "/a.txt", "/d/c.rml", "/d/e/f.rml", "/d.rml", "/d-e/g.rml"} {
		s.put(file, "x")
	}
	s.wantList("/", "a.txt|b.rml|d.rml", "d|d-e")
	s.wantList("/d", "c.rml", "e")
	s.wantList("/d/e", "f.rml", "")
	for range 2 { // listing changes nothing
		s.wantList("/d-e", "g.rml", "")
	}
	s.remove("/d")
	s.wantList("/", "a.txt|b.rml|d.rml", "d-e")
}

func keepsNames(_ *testing.T, s *subject) {
	names := []string{" a .rml ", "\u00fc.rml", "u\u0308.rml", `b"c'.rml`, `d\e.rml`, "f%2f.rml", "g..rml", ".rml", "*?.rml", "h", "i.", "\u202ej.rml", "k\u2028.rml", strings.Repeat("l", 250) + ".rml"}
	for _, name := range names {
		s.put("/x/"+name, name)
	}
	for _, name := range names {
		assert.Equal(s.t, name, s.read(s.open("/x/"+name)))
	}
	slices.Sort(names)
	s.wantList("/x", strings.Join(names, "|"), "")
}

func isNotThere(t *testing.T, s *subject) {
	s.put("/d/a.rml", "x")
	for _, folder := range []string{"/x", "/d/x", "/d/x/y", "/d/a.rml", "/d/a.rml/x"} {
		l, err := s.source.List(t.Context(), folder)
		assert.ErrorIs(t, err, fs.ErrNotExist, "list %s: got %v", folder, l)
	}
	s.misses("/", "/x", "/d", "/d/x", "/d/a.rml/x", "/d/a", "/d/A.rml", "/d/a.rml ", "/x/y")
}

func takesCanonicalPaths(_ *testing.T, s *subject) {
	s.put("/d/a.rml", "x")
	s.misses("", "d/a.rml", "./d/a.rml", "//d/a.rml", "/d//a.rml", "/d/./a.rml", "/d/../d/a.rml", "/d/a.rml/", "/../d/a.rml", "/d/a.rml\x00", "/d/a.rml\n", "/d/\xff")
}

func readsFiles(t *testing.T, s *subject) {
	text := strings.Repeat("0123456789", 10_000)
	s.put("/a.txt", text)
	s.put("/empty", "")
	f := s.open("/a.txt")
	assert.True(t, f.Size() == int64(len(text)) && s.read(f) == text, "the content is another, or the size: %d", f.Size())
	for _, c := range []struct {
		at   int64
		want string
		err  error
	}{{55_555, "5678901234", nil}, {f.Size() - 3, "789", io.EOF}, {f.Size() + 3, "", io.EOF}} {
		part := make([]byte, 10)
		n, err := f.ReadAt(part, c.at)
		assert.True(t, errors.Is(err, c.err) && string(part[:n]) == c.want, "at %d: got %q and %v", c.at, part[:n], err)
	}
	empty := s.open("/empty")
	assert.True(t, empty.Size() == 0 && s.read(empty) == "", "an empty file has %d bytes", empty.Size())
}

func keepsSize(t *testing.T, s *subject) {
	s.put("/a.txt", "short")
	f := s.open("/a.txt")
	s.put("/a.txt", "much longer than before")
	got := s.read(f)
	assert.True(t, f.Size() == 5 && len(got) <= 5, "got %d bytes and %q, want no more than 5", f.Size(), got)
}

func identifies(t *testing.T, s *subject) {
	s.put("/a.txt", "one")
	s.put("/b.txt", "one")
	first := s.open("/a.txt").Identity()
	again := s.open("/a.txt").Identity()
	assert.True(t, again == first && first.Path == "/a.txt" && first.Size == 3 && first.Modified != 0, "got %+v and then %+v, want the same", first, again)
	assert.NotEqual(t, first, s.open("/b.txt").Identity(), "two files")
	s.remove("/a.txt")
	s.put("/a.txt", "three")
	assert.NotEqual(t, first, s.open("/a.txt").Identity(), "two contents")
}

func readsConcurrently(t *testing.T, s *subject) {
	text := strings.Repeat("x", 100_000)
	s.put("/d/a.txt", text)
	f := s.open("/d/a.txt")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				_, err := s.source.List(context.Background(), "/d")
				assert.NoError(t, err)
				g, err := s.source.Open(context.Background(), "/d/a.txt")
				if !assert.NoError(t, err) {
					return
				}
				_ = g.Close()
				n, err := f.ReadAt(make([]byte, len(text)), 0)
				assert.Len(t, text, n, "got %v", err)
			}
		})
	}
	all.Wait()
}

func tellsChanges(t *testing.T, s *subject) {
	s.put("/d/a.rml", "x")
	s.put("/d/e/b.rml", "x")
	if l, err := s.source.List(t.Context(), "/"); err == nil && l.Unwatched {
		t.Skip("the source says that it cannot be watched")
	}
	Follow(t, s.source, []Step{
		{"a new file", func() error { return s.edit.Put("/d/c.rml", "x") }, "/d/a.rml /d/c.rml /d/e/b.rml"},
		{"a removed file", func() error { return s.edit.Remove("/d/c.rml") }, "/d/a.rml /d/e/b.rml"},
		{"a renamed file", func() error { return s.edit.Rename("/d/a.rml", "/d/z.rml") }, "/d/e/b.rml /d/z.rml"},
		{"another extension", func() error { return s.edit.Rename("/d/z.rml", "/d/z.txt") }, "/d/e/b.rml"},
		{"the extension of before", func() error { return s.edit.Rename("/d/z.txt", "/d/z.rml") }, "/d/e/b.rml /d/z.rml"},
		{"a new folder with a folder", func() error { return s.edit.Put("/n/m/o.rml", "x") }, "/d/e/b.rml /d/z.rml /n/m/o.rml"},
		{"a file in the new folder", func() error { return s.edit.Put("/n/m/p.rml", "x") }, "/d/e/b.rml /d/z.rml /n/m/o.rml /n/m/p.rml"},
		{"a renamed folder", func() error { return s.edit.Rename("/n", "/q") }, "/d/e/b.rml /d/z.rml /q/m/o.rml /q/m/p.rml"},
		{"a file below the renamed folder", func() error { return s.edit.Put("/q/m/r.rml", "x") }, "/d/e/b.rml /d/z.rml /q/m/o.rml /q/m/p.rml /q/m/r.rml"},
		{"a folder under the old name", func() error { return s.edit.Put("/n/m/s.rml", "x") }, "/d/e/b.rml /d/z.rml /n/m/s.rml /q/m/o.rml /q/m/p.rml /q/m/r.rml"},
		{"a removed file in that", func() error { return s.edit.Remove("/n/m/s.rml") }, "/d/e/b.rml /d/z.rml /q/m/o.rml /q/m/p.rml /q/m/r.rml"},
		{"a removed folder", func() error { return s.edit.Remove("/q") }, "/d/e/b.rml /d/z.rml"},
	})
}

// Step is a change of the files, and the paths with the extension rml that there are then.
type Step struct {
	What string
	Do   func() error
	Want string
}

// seenMax is how long a change may take to be seen: that it is seen is required, not how soon.
const seenMax = 2 * time.Minute

// Follow starts a service on the source, and checks that its lists follow each step.
func Follow(t *testing.T, source repository.Source, steps []Step) {
	t.Helper()
	system := actors.NewSystem(zerolog.Nop())
	s := repository.Start(repository.Options{
		System: system, Source: source, Settle: 10 * time.Millisecond, Log: zerolog.Nop(),
		Reconcile: time.Hour, ReconcileUnwatched: time.Hour,
	})
	defer func() {
		assert.NoError(t, errors.Join(s.Stop(context.Background()), system.Stop(context.Background())))
	}()
	admin := &identity.Principal{ID: "root", Privileges: []string{string(identity.RepositoryAdmin)}}
	seen := func() string {
		var paths []string
		require.NoError(t, s.List(t.Context(), admin, "rml", func(path string) error { paths = append(paths, path); return nil }))
		return strings.Join(paths, " ")
	}
	seen() // waits for the first walk
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for _, step := range steps {
		require.NoError(t, step.Do(), step.What)
		late := time.After(seenMax)
		for got := seen(); got != step.Want; got = seen() {
			select {
			case <-again.C:
			case <-late:
				t.Fatalf("%s was not seen: got %q, want %q", step.What, got, step.Want)
			}
		}
	}
}

func endsWatch(t *testing.T, s *subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.NoError(t, s.source.Watch(ctx, func(repository.Change) {}))
}
