package persistence

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/clocktest"
)

// told notes in which order its waiters are told.
type told struct{ names []string }

type toldOne struct {
	*told
	name string
}

func (w toldOne) Committed(err error) { w.names = append(w.names, fmt.Sprint(w.name, " ", err)) }

// setting joins a group with one setting.
func setting(g *Group, name string, w Waiter, before *Joint) (*Joint, bool) {
	writes := g.NewWrites(Meta)
	writes.Set(SettingKey(nil, name), []byte("1"))
	j, taken := g.Join(writes, w, before)
	if !taken {
		writes.Discard()
	}
	return j, taken
}

// TestAGroupIsOneCommit: nothing of it is in the store before the flush, everything
// afterwards, and its waiters are told in their order.
func TestAGroupIsOneCommit(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	g := s.NewGroup()
	var log told
	first, _ := setting(g, "a", toldOne{&log, "a"}, nil)
	g.Enter()
	g.Flush()
	shared, _ := setting(g, "b", toldOne{&log, "b"}, first)
	if first != shared || !first.IsOpenIn(g) || first.IsOpenIn(s.NewGroup()) || s.Metrics().Appended != 0 {
		t.Fatal("a part was not gathered, or was flushed although somebody is about to join")
	}
	wantError(t, "before the flush", second(s.Load(SettingKey(nil, "a"))), ErrNotFound)
	if _, taken := g.Join(nil, toldOne{&log, "reader"}, nil); !taken {
		t.Error("who only waits was not taken")
	}
	g.Leave()
	if !first.Settle() || first.IsOpenIn(g) || s.Metrics().Appended != 1 {
		t.Errorf("%d commits, want one", s.Metrics().Appended)
	}
	wantSetting(t, s, "a", "1")
	wantSetting(t, s, "b", "1")
	must(t, s.AwaitDurable())
	if want := []string{"a <nil>", "b <nil>", "reader <nil>"}; !slices.Equal(log.names, want) {
		t.Errorf("told %q, want %q", log.names, want)
	}
	g.Flush() // of nothing
	third, _ := setting(g, "c", toldOne{&log, "c"}, first)
	if third == first || !third.Settle() {
		t.Error("a joint took more after its flush")
	}
}

// TestAGroupFlushesWhenItHasEnough, by number and by bytes.
func TestAGroupFlushesWhenItHasEnough(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	g := s.NewGroup()
	for range 2*jointWaitersMax - 1 {
		setting(g, "a", make(waitFor, 1), nil)
	}
	if n := s.Metrics().Appended; n != 1 {
		t.Errorf("%d commits, want 1", n)
	}
	w := g.NewWrites(Meta)
	w.Set(SettingKey(nil, "large"), make([]byte, jointBytesMax))
	g.Join(w, make(waitFor, 1), nil)
	setting(g, "b", make(waitFor, 1), nil)
	if n := s.Metrics().Appended; n != 2 {
		t.Errorf("%d commits, want 2", n)
	}
	g.Flush()
	must(t, s.AwaitDurable())
	wantSetting(t, s, "b", "1")
}

// TestNothingBuildsOnARefusedGroup: neither in the group nor, after Settle, elsewhere.
func TestNothingBuildsOnARefusedGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fs := hangable(t)
		g := s.NewGroup()
		before := make(waitFor, 1)
		first, _ := setting(g, "a", before, nil)
		release := fs.hold()
		stuck := appendSetting(s, "stuck", "1")
		clocktest.Advance(s.options.CommitWaitMax / 2)
		wantError(t, "accepting", s.Accepting(), ErrStalled)
		g.Flush()
		if first.Settle() {
			t.Fatal("a store that takes nothing has taken a group")
		}
		release()
		wantError(t, "the commit before", <-stuck, nil)
		wantError(t, "waiter", <-before, ErrStalled)
		clocktest.Advance(time.Second) // some ticks of the watchdog
		if _, taken := setting(g, "b", make(waitFor, 1), first); taken {
			t.Error("a part was joined that builds on what was refused")
		}
		other, _ := setting(g, "c", make(waitFor, 1), nil)
		if !other.Settle() {
			t.Error("another part was refused")
		}
		for _, name := range []string{"a", "b"} {
			wantError(t, name, second(s.Load(SettingKey(nil, name))), ErrNotFound)
		}
		wantSetting(t, s, "c", "1")
	})
}
