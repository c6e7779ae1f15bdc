package workflow_test

import (
	"testing/synctest"

	"troupe/persistence/key"
)

// crashAt loses the power behind about so many syncs of the log, in the middle of the next one, and starts again.
func (h *harness) crashAt(syncs int) {
	h.t.Helper()
	for range syncs {
		h.Disk.Hold()
		synctest.Wait()
		h.Disk.Release()
	}
	h.Disk.Hold()
	synctest.Wait()
	after := h.Disk.AfterCrash()
	h.Disk.Release()
	h.End()
	h.Disk = after
	h.Begin()
}

func (h *harness) count(workflowID string) (n int) {
	h.t.Helper()
	h.Must(h.Store.Scan(key.RecordPrefix(nil, key.EveryShard, workflowID), func(_, _ []byte) error { n++; return nil }))
	return n
}

// made is how often instances of a workflow were created.
func (h *harness) made(workflowID string) int {
	h.t.Helper()
	count, err := h.Store.CountAll(key.CountPrefix(nil, key.EveryShard, workflowID))
	h.Must(err)
	return int(count)
}
