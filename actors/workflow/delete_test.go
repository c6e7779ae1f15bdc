package workflow_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/workflow"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
)

func (h *harness) deleteForm(who *identity.Principal, workflowID, id string) error {
	return h.DeleteForm(who, workflowID, id)
}

// checkNoLeftovers is the invariant: whatever names an instance in its key belongs to one that is there.
func (h *harness) checkNoLeftovers() {
	h.t.Helper()
	there := map[key.ID]bool{}
	h.EachRow(func(k key.Parts, _, _ []byte) {
		if k.Table == "record" {
			there[k.ID] = true
		}
	})
	h.EachRow(func(k key.Parts, _, _ []byte) {
		ofPlace := k.Table == "incident" && k.ID[0] == 0xFF // it is of a place in a definition
		assert.False(h.t, k.ID != (key.ID{}) && !there[k.ID] && !ofPlace, "%s belongs to no instance", k)
	})
}

// TestEveryCrashLeavesDeletionsWhole cuts the power while forms are made, written, submitted and deleted.
func TestEveryCrashLeavesDeletionsWhole(t *testing.T) {
	disk := storetest.NewDisk()
	h := startOn(t, disk, workflow.Options{})
	var crashed []*storetest.Disk
	var mu sync.Mutex
	gone, stays := map[string]int{}, map[string]int{} // by how many crashes there were when that was acknowledged
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for n := range 25 {
				id := h.createForm(john, "leave", form.KindForm)
				_, err := h.draft(john, id, fmt.Sprintf(`{"n":%d}`, n))
				assert.NoError(t, err)
				if n%4 == worker {
					h.MustSend(john, "leave", id, "submit", "", "key")
					mu.Lock()
					stays[id] = len(crashed)
					mu.Unlock()
					continue
				}
				assert.NoError(t, h.deleteForm(john, "leave", id))
				mu.Lock()
				gone[id] = len(crashed)
				mu.Unlock()
			}
		})
	}
	for range 12 {
		after := disk.AfterCrash()
		mu.Lock()
		crashed = append(crashed, after)
		mu.Unlock()
	}
	all.Wait()
	crashed = append(crashed, disk.AfterCrash())
	h.checkLists()
	h.checkNoLeftovers()
	for n, disk := range crashed {
		again := startOn(t, disk, workflow.Options{})
		again.checkLists()
		again.checkNoLeftovers()
		again.CheckIndexes()
		for id, at := range gone {
			_, err := again.Look(john, "leave", id)
			assert.False(t, at < n && !errors.Is(err, failure.ErrNotFound), "crash %d: %s was deleted before crash %d, and is back: %v", n, id, at, err)
		}
		for id, at := range stays {
			_, err := again.Look(john, "leave", id)
			assert.False(t, at < n && err != nil, "crash %d: %s, submitted before crash %d: %v", n, id, at, err)
		}
		again.End()
	}
}
