package repository_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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
		s := start(t, repository.Options{Source: &slow{Memory: m, folder: 300 * time.Millisecond}, Settle: 100 * time.Millisecond})
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

func TestMemory(t *testing.T) {
	sourcetest.Run(t, func(*testing.T) (repository.Source, sourcetest.Editor) {
		m := sourcetest.NewMemory()
		return m, m
	})
}
