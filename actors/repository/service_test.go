package repository_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/logtest"
	"troupe/actors/repository"
	"troupe/actors/repository/sourcetest"
	"troupe/persistence/clocktest"
)

var (
	admin = &identity.Principal{ID: "root", Privileges: []string{string(identity.RepositoryAdmin)}}
	mary  = &identity.Principal{ID: "mary", Roles: []string{"manager"}}
	john  = &identity.Principal{ID: "john.doe"}
)

const people = "roles: [{id: manager}]\nusers: [{id: mary, roles: [manager]}, {id: john.doe}, {id: root, privileges: [mod-repository-admin]}]\n"

func rights(t testing.TB, text string) *repository.Rights {
	t.Helper()
	d, err := identity.ParseDirectory("identity.yaml", []byte(people))
	if err != nil {
		t.Fatal(err)
	}
	r, err := repository.ParseRights("rights.yaml", []byte(text), d)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// service is a started one with its log.
type service struct {
	*repository.Service
	t   testing.TB
	log *logtest.Log
}

func start(t testing.TB, o repository.Options) *service {
	t.Helper()
	s := &service{t: t, log: new(logtest.Log)}
	o.System = actors.NewSystem(zerolog.Nop())
	o.Log = zerolog.New(s.log)
	o.Settle, o.WaitMax = cmp.Or(o.Settle, 10*time.Millisecond), cmp.Or(o.WaitMax, lateMax)
	s.Service = repository.Start(o)
	t.Cleanup(func() {
		for range 2 { // it can be called again
			assert.NoError(t, errors.Join(s.Stop(context.Background()), o.System.Stop(context.Background())))
		}
	})
	return s
}

func (s *service) list(caller *identity.Principal, extension string) ([]string, error) {
	got := []string{}
	err := s.List(s.t.Context(), caller, extension, func(path string) error { got = append(got, path); return nil })
	return got, err
}

func (s *service) wantList(caller *identity.Principal, extension, want string) {
	s.t.Helper()
	got, err := s.list(caller, extension)
	assert.True(s.t, err == nil && strings.Join(got, " ") == want, "%q for %s: got %q and %v, want %q", extension, caller.ID, got, err, want)
}

const (
	// seenMax is the promise: within so long a change counts.
	seenMax = 2 * time.Second
	// lateMax is when a test gives up on a machine that has other work, too. It is
	// far below the next walk of everything, which would find the change anyway.
	lateMax = 2 * time.Minute
)

func (s *service) awaits(what string, caller *identity.Principal, extension, want string) {
	s.t.Helper()
	late := time.After(lateMax)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		got, err := s.list(caller, extension)
		require.NoError(s.t, err, what)
		if strings.Join(got, " ") == want {
			return
		}
		select {
		case <-again.C:
		case <-late:
			s.t.Fatalf("%s: got %q, want %q", what, got, want)
		}
	}
}

func (s *service) awaitReady() { s.t.Helper(); s.until(func() bool { return s.Ready() == nil }) }

func (s *service) until(ok func() bool) {
	s.t.Helper()
	for late := time.After(lateMax); !ok(); {
		select {
		case <-late:
			s.t.Fatal("it never happens")
		case <-time.After(time.Millisecond):
		}
	}
}

func put(t testing.TB, e sourcetest.Editor, files ...string) {
	t.Helper()
	for _, f := range files {
		require.NoError(t, e.Put(f, "text of "+f))
	}
}

func (s *service) opens(caller *identity.Principal, path string) {
	s.t.Helper()
	f, err := s.Open(s.t.Context(), caller, path)
	if !assert.NoError(s.t, err, "open %s for %s", path, caller.ID) {
		return
	}
	assert.NoError(s.t, f.Close())
}

// TestList holds gateway/INTERFACE.md, "Files", for what is listed.
func TestList(t *testing.T) {
	m := sourcetest.NewMemory()
	put(t, m, "/a.RML", "/a.rml", "/b.rml/c.rml", "/a..rml", "/.rml", "/a .rml", "/d.rml ", "/\u00fc.rml", "/u\u0308.rml", `/q"'.rml`, `/b\s.rml`,
		"/z/"+strings.Repeat("n", 251)+".long", "/a-b/1.o", "/a/1.o", "/a.o", "/a/b/2.o", "/a0/1.o",
		"/Sales/plan.doc", "/Shared/plan.doc", "/Temp/plan.doc", "/User/mary/plan.doc", "/User/john.doe/plan.doc")
	s := start(t, repository.Options{Source: m, Rights: rights(t, "- {path: /Sales, readers: [role:manager]}\n- {path: /Shared, readers: ['*']}\n")})
	rml := []string{"/\u00fc.rml", "/u\u0308.rml", "/.rml", "/a .rml", "/a..rml", "/a.rml", "/b.rml/c.rml", `/b\s.rml`, `/q"'.rml`}
	slices.Sort(rml)
	s.wantList(admin, "rml", strings.Join(rml, " "))
	s.wantList(admin, ".rml", strings.Join(rml, " "))
	s.wantList(admin, "rml ", "/d.rml ")
	s.wantList(admin, "long", "/z/"+strings.Repeat("n", 251)+".long")
	s.wantList(admin, "nothing", "")
	s.wantList(admin, "o", "/a-b/1.o /a.o /a/1.o /a/b/2.o /a0/1.o")
	t.Run("D.4 what the caller cannot read is silently excluded", func(t *testing.T) {
		s.t = t
		s.wantList(mary, "doc", "/Sales/plan.doc /Shared/plan.doc /Temp/plan.doc /User/mary/plan.doc")
		s.wantList(john, "doc", "/Shared/plan.doc /Temp/plan.doc /User/john.doe/plan.doc")
		s.wantList(john, "rml", "")
	})
	t.Run("D.4 mod-repository-admin receives all of the whole repository", func(t *testing.T) {
		s.t = t
		s.wantList(admin, "doc", "/Sales/plan.doc /Shared/plan.doc /Temp/plan.doc /User/john.doe/plan.doc /User/mary/plan.doc")
	})
	t.Run("another right counts from the next list on", func(t *testing.T) {
		s.t = t
		s.SetRights(rights(t, "- {path: /Sales, readers: [user:john.doe]}\n- {path: /Temp, readers: []}\n"))
		s.wantList(john, "doc", "/Sales/plan.doc /User/john.doe/plan.doc")
		s.wantList(mary, "doc", "/User/mary/plan.doc")
		s.SetRights(nil)
		s.wantList(mary, "doc", "/Temp/plan.doc /User/mary/plan.doc")
	})
	_, err := s.list(admin, ".")
	assert.ErrorIs(t, err, failure.ErrInvalid, "without an extension")
	t.Run("a panic costs its request alone", func(t *testing.T) {
		s.t = t
		assert.ErrorIs(t, s.List(t.Context(), admin, "o", func(string) error { panic("oh") }), failure.ErrInternal)
		s.wantList(admin, "long", "/z/"+strings.Repeat("n", 251)+".long")
	})
}

// TestOpen holds gateway/INTERFACE.md, "The path of a template", for the part that
// this package decides.
func TestOpen(t *testing.T) {
	m := sourcetest.NewMemory()
	put(t, m, "/Sales/plan.doc", "/User/john.doe/plan.doc", "/a.doc")
	s := start(t, repository.Options{Source: m, Rights: rights(t, "- {path: /Sales, readers: [role:manager]}\n")})
	f, err := s.Open(t.Context(), mary, "/Sales/plan.doc")
	require.NoError(t, err)
	text, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	if err != nil || string(text) != "text of /Sales/plan.doc" || f.Identity().Path != "/Sales/plan.doc" {
		t.Errorf("got %q, %v and %+v", text, err, f.Identity())
	}
	assert.NoError(t, f.Close())
	var words string
	for _, c := range []struct {
		rule   string
		caller *identity.Principal
		path   string
	}{
		{"missing", mary, "/Sales/none.doc"},
		{"missing, for an administrator", admin, "/none.doc"},
		{"a folder", mary, "/Sales"},
		{"the repository", admin, "/"},
		{"not readable", john, "/Sales/plan.doc"},
		{"not readable, at the top", mary, "/a.doc"},
		{"somebody else's", mary, "/User/john.doe/plan.doc"},
		{"missing where nothing is readable", john, "/Sales/none.doc"},
		{"empty", admin, ""},
		{"dots that lead to a readable folder", john, "/Sales/../User/john.doe/plan.doc"},
		{"another case", admin, "/A.doc"},
		{"a blank at the end", admin, "/a.doc "},
		{"too deep", admin, strings.Repeat("/a", 10_000)},
		{"5,000 bytes", admin, "/" + strings.Repeat("a", 5000)},
	} {
		t.Run(c.rule, func(t *testing.T) {
			f, err := s.Open(t.Context(), c.caller, c.path)
			require.True(t, errors.Is(err, failure.ErrNotFound) && f == nil, "got %v and %v, want ErrNotFound", f, err)
			if words == "" {
				words = err.Error()
			}
			assert.Equal(t, words, err.Error(), "one cause can be told from another")
		})
	}
	s.opens(admin, "/User/john.doe/plan.doc")
}

// slow is a source that takes its time for each file and each folder.
type slow struct {
	*sourcetest.Memory
	file, folder time.Duration
}

func (s slow) Open(ctx context.Context, file string) (*repository.File, error) {
	if err := pause(ctx, s.file); err != nil {
		return nil, err
	}
	return s.Memory.Open(ctx, file)
}

func (s slow) List(ctx context.Context, folder string) (*repository.Listing, error) {
	if err := pause(ctx, s.folder); err != nil {
		return nil, err
	}
	return s.Memory.List(ctx, folder)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestAMissAsksTheSource: whatever the caller reads, the source is asked once, so
// that one that is far away takes as long for each miss.
func TestAMissAsksTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const want = 33 * time.Millisecond
		m := sourcetest.NewMemory()
		put(t, m, "/Sales/plan.doc")
		s := start(t, repository.Options{Source: slow{Memory: m, file: want}, Rights: rights(t, "- {path: /Sales, readers: [role:manager]}\n")})
		for _, c := range []struct {
			what   string
			caller *identity.Principal
			path   string
		}{
			{"missing", mary, "/Sales/none.doc"},
			{"missing, in no folder", mary, "/Sales/none/none.doc"},
			{"not readable", john, "/Sales/plan.doc"},
			{"missing where nothing is readable", john, "/Sales/none.doc"},
			{"no path", john, "Sales"},
			{"there", mary, "/Sales/plan.doc"},
		} {
			begun := time.Now()
			f, err := s.Open(t.Context(), c.caller, c.path)
			if f != nil {
				_ = f.Close()
			}
			got := time.Since(begun)
			assert.True(t, got == want && (err == nil) == (c.what == "there"), "%s: took %v, want %v (%v)", c.what, got, want, err)
		}
	})
}

// TestAListWaitsForTheIndex holds gateway/INTERFACE.md, "The index after a start".
func TestAListWaitsForTheIndex(t *testing.T) {
	m := sourcetest.NewMemory()
	put(t, m, "/a.rml")
	release := m.Hold()
	s := start(t, repository.Options{Source: m, WaitMax: 50 * time.Millisecond})
	assert.Error(t, s.Ready(), "it is ready before anything was listed")
	_, err := s.list(admin, "rml")
	assert.ErrorIs(t, err, failure.ErrUnavailable, "behind WaitMax")
	_, err = s.list(admin, "")
	assert.ErrorIs(t, err, failure.ErrInvalid, "what is wrong anyway")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, s.List(ctx, admin, "rml", nil), failure.ErrUnavailable, "behind the deadline")
	s.opens(admin, "/a.rml") // it needs no index
	release()
	s.awaitReady()
	s.wantList(admin, "rml", "/a.rml")
}

// TestWhoWaitsForTheIndexIsInNobodysWay: a file is opened without the index, however
// many lists wait for it.
func TestWhoWaitsForTheIndexIsInNobodysWay(t *testing.T) {
	m := sourcetest.NewMemory()
	put(t, m, "/a.rml")
	release := m.Hold()
	s := start(t, repository.Options{Source: m})
	const waiting = 2000
	var all sync.WaitGroup
	for range waiting {
		all.Go(func() {
			got, err := s.list(admin, "rml")
			assert.False(t, !errors.Is(err, failure.ErrBusy) && (err != nil || len(got) != 1), "a list that has waited: got %q and %v", got, err)
		})
	}
	s.until(func() bool { return s.Metrics().Waited >= waiting })
	s.opens(admin, "/a.rml")
	release()
	all.Wait()
}

// TestAChangeCountsInTime holds that a change counts within two seconds, also
// while others come all the time.
func TestAChangeCountsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sourcetest.NewMemory()
		s := start(t, repository.Options{Source: slow{Memory: m, folder: 300 * time.Millisecond}, Settle: 100 * time.Millisecond})
		s.wantList(admin, "rml", "")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for ctx.Err() == nil {
				put(t, m, "/other.txt")
				_ = pause(ctx, 7*time.Millisecond)
			}
		}()
		want := ""
		for i := range 50 {
			clocktest.Advance(time.Duration(i) * 37 * time.Millisecond)
			file := fmt.Sprintf("/%02d.rml", i)
			put(t, m, file)
			want = strings.TrimSpace(want + " " + file)
			clocktest.Advance(seenMax)
			s.wantList(admin, "rml", want)
		}
	})
}

// TestReconciliation finds what no notice was given of.
func TestReconciliation(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*sourcetest.Memory, *repository.Options)
		lose func(*sourcetest.Memory)
	}{
		{"by the clock", func(_ *sourcetest.Memory, o *repository.Options) { o.Reconcile = 20 * time.Millisecond }, nil},
		{"by the clock, sooner where folders are not watched", func(m *sourcetest.Memory, o *repository.Options) {
			m.Unwatched = true
			o.ReconcileUnwatched = 20 * time.Millisecond
		}, nil},
		{"when notices are lost", func(*sourcetest.Memory, *repository.Options) {}, func(m *sourcetest.Memory) { m.Tell(repository.Change{}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := sourcetest.NewMemory()
			m.Quiet = true
			put(t, m, "/d/a.rml", "/e/f/b.rml")
			o := repository.Options{Source: m}
			c.set(m, &o)
			s := start(t, o)
			s.wantList(admin, "rml", "/d/a.rml /e/f/b.rml")
			put(t, m, "/d/c.rml", "/n/d.rml")
			require.NoError(t, m.Remove("/e/f"))
			if c.lose != nil {
				c.lose(m)
			}
			s.awaits("what was not told", admin, "rml", "/d/a.rml /d/c.rml /n/d.rml")
		})
	}
	t.Run("not without a reason", func(t *testing.T) { // the control
		synctest.Test(t, func(t *testing.T) {
			m := sourcetest.NewMemory()
			m.Quiet = true
			put(t, m, "/a.rml")
			s := start(t, repository.Options{Source: m})
			s.wantList(admin, "rml", "/a.rml")
			lists := m.Lists()
			put(t, m, "/b.rml")
			clocktest.Advance(time.Minute)
			s.wantList(admin, "rml", "/a.rml")
			assert.Equal(t, lists, m.Lists(), "folders were listed")
		})
	})
}

// TestFoldersThatCannotBeRead are logged once and skipped.
func TestFoldersThatCannotBeRead(t *testing.T) {
	m := sourcetest.NewMemory()
	m.Quiet = true // or a folder may be looked at twice in one walk, and is counted twice
	put(t, m, "/a.rml", "/d/b.rml", "/d/e/c.rml", "/f/d.rml")
	m.Fail("/d", fs.ErrPermission)
	s := start(t, repository.Options{Source: m, Reconcile: 10 * time.Millisecond})
	s.wantList(admin, "rml", "/a.rml /f/d.rml")
	s.until(func() bool { return s.Metrics().Walks >= 3 })
	assert.Equal(t, int64(1), s.Metrics().Last.Unreadable)
	assert.Equal(t, 1, s.log.Count(`"folder":"/d"`), "the log")
	m.Fail("/d", nil)
	s.awaits("a folder that can be read again", admin, "rml", "/a.rml /d/b.rml /d/e/c.rml /f/d.rml")
}

// TestAPassingFaultLosesNothing: what is known stays, and it is tried again.
func TestAPassingFaultLosesNothing(t *testing.T) {
	m := sourcetest.NewMemory()
	put(t, m, "/a.rml", "/d/b.rml")
	s := start(t, repository.Options{Source: m})
	s.wantList(admin, "rml", "/a.rml /d/b.rml")
	lists := m.Lists()
	for _, folder := range []string{"/", "/d"} {
		m.Fail(folder, errors.New("too many open files"))
		m.Tell(repository.Change{Folder: folder})
	}
	put(t, m, "/d/c.rml")
	s.until(func() bool { return m.Lists() >= lists+2 })
	s.wantList(admin, "rml", "/a.rml /d/b.rml")
	for _, folder := range []string{"/", "/d"} {
		m.Fail(folder, nil)
	}
	s.awaits("the end of the fault", admin, "rml", "/a.rml /d/b.rml /d/c.rml")
}

// TestTheFirstListIsNotShort: while the place of the files cannot be reached, or
// one of its folders, a list waits.
func TestTheFirstListIsNotShort(t *testing.T) {
	for _, folder := range []string{"/", "/d"} {
		m := sourcetest.NewMemory()
		put(t, m, "/a.rml", "/d/b.rml")
		m.Fail(folder, failure.ErrUnavailable)
		s := start(t, repository.Options{Source: m, WaitMax: time.Millisecond})
		s.until(func() bool { return s.Metrics().Walks != 0 })
		got, err := s.list(admin, "rml")
		assert.True(t, errors.Is(err, failure.ErrUnavailable) && s.Ready() != nil, "%s: got %v, %v", folder, got, err)
		m.Fail(folder, nil)
		s.awaitReady()
		s.wantList(admin, "rml", "/a.rml /d/b.rml")
	}
}

// TestOneFolderDoesNotHoldTheFirstListForEver, and the repository itself does.
func TestOneFolderDoesNotHoldTheFirstListForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sourcetest.NewMemory()
		put(t, m, "/a.rml", "/d/b.rml")
		m.Fail("/", failure.ErrUnavailable)
		m.Fail("/d", failure.ErrUnavailable)
		s := start(t, repository.Options{Source: m})
		clocktest.Advance(time.Hour)
		assert.Error(t, s.Ready(), "it is ready without having seen anything")
		m.Fail("/", nil)
		clocktest.Advance(seenMax)
		s.wantList(admin, "rml", "/a.rml")
		m.Fail("/d", nil)
		clocktest.Advance(seenMax)
		s.wantList(admin, "rml", "/a.rml /d/b.rml")
	})
}

// TestDepthIsBounded: what is too deep is neither listed nor opened.
func TestDepthIsBounded(t *testing.T) {
	m := sourcetest.NewMemory()
	m.Quiet = true // or a folder may be looked at twice in one walk, and is counted twice
	put(t, m, "/1/2/3/in.rml", "/1/2/3/4/out.rml")
	s := start(t, repository.Options{Source: m, DepthMax: 3})
	s.wantList(admin, "rml", "/1/2/3/in.rml")
	assert.Equal(t, int64(1), s.Metrics().Last.TooDeep)
	s.opens(admin, "/1/2/3/in.rml")
	_, err := s.Open(t.Context(), admin, "/1/2/3/4/out.rml")
	assert.ErrorIs(t, err, failure.ErrNotFound)
	m = sourcetest.NewMemory()
	deep := start(t, repository.Options{Source: m})
	put(t, m, strings.Repeat("/d", 256)+"/in.rml", strings.Repeat("/d", 257)+"/out.rml")
	deep.awaits("256 levels", admin, "rml", strings.Repeat("/d", 256)+"/in.rml")
}

// TestAStorm lists while files, folders and rights change: each list is in order,
// without a path twice, and without one that nobody put there or may see.
func TestAStorm(t *testing.T) {
	m := sourcetest.NewMemory()
	put(t, m, "/keep/always.rml", "/secret/never.rml")
	open := rights(t, "- {path: /, readers: ['*']}\n- {path: /secret, readers: []}\n")
	s := start(t, repository.Options{Source: m, Rights: open, Settle: time.Millisecond, Reconcile: 5 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			folder := fmt.Sprintf("/f%d", i%7)
			put(t, m, folder+"/sub/x.rml", folder+fmt.Sprintf("/%d.rml", i))
			if i%3 == 0 {
				assert.NoError(t, m.Remove(folder))
			}
			s.SetRights(open)
			<-time.After(100 * time.Microsecond)
		}
	})
	for range 3 {
		all.Go(func() {
			for ctx.Err() == nil {
				got, err := s.list(mary, "rml")
				if !assert.True(t, err == nil && slices.IsSorted(got) && len(slices.Compact(slices.Clone(got))) == len(got), "got %q and %v", got, err) {
					return
				}
				if !assert.True(t, slices.Contains(got, "/keep/always.rml") && !slices.Contains(got, "/secret/never.rml"), "got %q", got) {
					return
				}
				<-time.After(200 * time.Microsecond)
			}
		})
	}
	all.Wait()
}

func TestAfterStopNothingIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sourcetest.NewMemory()
		defer m.Hold()()
		s := start(t, repository.Options{Source: m})
		waiting := make(chan error, 1)
		go func() {
			_, err := s.list(admin, "rml")
			waiting <- err
		}()
		s.until(func() bool { return s.Metrics().Waited != 0 })
		begun := time.Now()
		require.NoError(t, s.Stop(t.Context()))
		_, err := s.list(admin, "rml")
		assert.ErrorIs(t, err, failure.ErrUnavailable, "list")
		_, err = s.Open(t.Context(), admin, "/a")
		assert.ErrorIs(t, err, failure.ErrUnavailable, "open")
		err = <-waiting
		assert.ErrorIs(t, err, failure.ErrUnavailable, "a list that waits for the index")
		assert.Zero(t, time.Since(begun), "it took")
	})
}

// TestTheIndexGoesOnAfterAPanic, of what lists a folder and of what watches.
func TestTheIndexGoesOnAfterAPanic(t *testing.T) {
	m := &panicking{Memory: sourcetest.NewMemory()}
	m.watch.Store(true)
	put(t, m.Memory, "/a.rml")
	s := start(t, repository.Options{Source: m, ReconcileUnwatched: 10 * time.Millisecond})
	s.wantList(admin, "rml", "/a.rml")
	s.until(func() bool { return !m.watch.Load() })
	m.list.Store(true)
	put(t, m.Memory, "/b.rml")
	s.awaits("the file behind the panics", admin, "rml", "/a.rml /b.rml")
	assert.False(t, m.list.Load(), "nothing panicked: the test proves nothing")
}

// panicking is a source whose next call panics.
type panicking struct {
	*sourcetest.Memory
	list, watch atomic.Bool
}

func (p *panicking) List(ctx context.Context, folder string) (*repository.Listing, error) {
	if p.list.Swap(false) {
		panic("a list")
	}
	return p.Memory.List(ctx, folder)
}

func (p *panicking) Watch(ctx context.Context, changed func(repository.Change)) error {
	if p.watch.Swap(false) {
		panic("the watch")
	}
	return p.Memory.Watch(ctx, changed)
}
