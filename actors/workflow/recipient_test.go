package workflow_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/shard"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/persistence/storetest"
)

// diary notes what recipients are told.
type diary struct {
	mu    sync.Mutex
	lines []string
}

// noted is a recipient with a diary. It keeps the instance until held is closed.
type noted struct {
	*diary
	name string
	held chan struct{} // nil: it does not
}

func (n noted) note(what string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, strings.TrimSpace(fmt.Sprintln(n.name, what, failure.Of(err).Kind)))
}

func (n noted) Begin(message.Turn) error {
	n.note("begin", nil)
	if n.held != nil {
		<-n.held
		return failure.ErrNotAllowed
	}
	return nil
}
func (n noted) Refused(err error)                    { n.note("refused", err) }
func (n noted) Answered(_ *message.Reply, err error) { n.note("answered", err) }

// TestARecipientHearsOfARefusalBeforeTheNextBegins: who sends many to an instance must not
// let a later one begin when an earlier one was not done.
func TestARecipientHearsOfARefusalBeforeTheNextBegins(t *testing.T) {
	for name, c := range map[string]struct {
		between func(t *testing.T, h *harness, first workflow.Posted)
		want    []string // of the first and the second
	}{
		"refused by the store": {func(t *testing.T, h *harness, _ workflow.Posted) {
			h.Disk.SetFree(0)
			clocktest.Advance(1e9)
			require.Error(t, h.Store.Accepting(), "the store takes writes: this test shows nothing")
		}, []string{"first begin", "first refused", "second begin"}},
		"given up": {func(t *testing.T, h *harness, first workflow.Posted) {
			h.SweepAfter(2*workflowtest.CommitWaitMax + 2*shard.SweepEvery)
			require.ErrorIs(t, first.GiveUp(), failure.ErrBusy)
		}, []string{"first refused", "second begin"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := startOn(t, storetest.NewDisk(), workflow.Options{})
				defer h.End()
				id, told, held := h.Make(john, "leave", ""), &diary{}, make(chan struct{})
				post := func(r noted) workflow.Posted {
					p, err := h.PostEvent(event(john, "leave", id, "note", "", ""), r)
					h.Must(err)
					return p
				}
				go post(noted{told, "holding", held}) // runs the instance, and stops in it
				synctest.Wait()
				first := post(noted{told, "first", nil})
				post(noted{told, "second", nil})
				c.between(t, h, first)
				close(held)
				synctest.Wait()
				at := -1
				for _, want := range c.want {
					i := slices.IndexFunc(told.lines, func(l string) bool { return strings.HasPrefix(l, want) })
					assert.Greater(t, i, at, "%q is not behind what has to be before it, in %q", want, told.lines)
					at = i
				}
			})
		})
	}
}

// TestWritesAreRefusedWhenTooMuchWaitsForTheStore, and are taken again afterwards.
func TestWritesAreRefusedWhenTooMuchWaitsForTheStore(t *testing.T) {
	if testing.Short() {
		t.Skip("64 MiB, one after the other")
	}
	synctest.Test(t, func(t *testing.T) {
		h := startOn(t, storetest.NewDisk(), workflow.Options{})
		defer h.End()
		id := h.Make(john, "leave", "")
		hanging := h.Disk.Hold()
		large := event(john, "leave", id, "note", `{"text":"`+strings.Repeat("x", 500<<10)+`"}`, "")
		told := &diary{}
		refused := error(nil)
		for n := 0; n < 200 && refused == nil; n++ {
			e := *large
			if _, refused = h.PostEvent(&e, noted{told, "", nil}); n == 0 {
				<-hanging
			}
		}
		if !errors.Is(refused, failure.ErrBusy) || h.Backlog() < 64<<20 {
			t.Errorf("got %v with %d bytes that wait for the store, want ErrBusy above 64 MiB", refused, h.Backlog())
		}
		h.Disk.Release()
		synctest.Wait()
		_, err := h.Try(john, "leave", id, "note", "", "")
		assert.NoError(t, err, "afterwards")
	})
}
