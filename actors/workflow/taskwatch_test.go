package workflow_test

import (
	"context"

	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/actors/task"
)

// watchTasks returns what a caller is told who watches tasks from now on. end ends that.
func (h *harness) watchTasks(who *identity.Principal) (next func() *task.Event, end func() error) {
	h.t.Helper()
	events := make(chan *task.Event)
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan error)
	go func() {
		reauthorize := func() (*identity.Principal, error) { return who, nil }
		ended <- h.TaskWatches.Watch(ctx, &task.WatchRequest{Caller: who, Reauthorize: reauthorize}, func(e *task.Event) error {
			if e.Kind != task.Heartbeat {
				events <- e
			}
			return nil
		})
	}()
	e := <-events
	require.Equal(h.t, task.Opened, e.Kind)
	return func() *task.Event { return <-events }, func() error { cancel(); return <-ended }
}
