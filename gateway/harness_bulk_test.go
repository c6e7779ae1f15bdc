package gateway

import (
	"context"
	"fmt"

	"troupe/actors/bulk"
	"troupe/actors/identity"
)

// fakeBulk are the bulk jobs of the fake workflows.
type fakeBulk struct{ *fakeWorkflows }

func (f fakeBulk) Create(_ context.Context, by *identity.Principal, j *bulk.Job, dryRun bool) error {
	err := f.ask(func() {
		f.asked = fmt.Sprint(by.ID, " ", j.WorkflowID, " ", j.Filter, " ", j.Event, " ", string(j.Data), " ", string(j.Plan), " ", j.Delete, " ", dryRun)
	})
	if total := int64(2); !dryRun {
		j.ID, j.Total = "01KDW1X4G3R7NAE5J8Q2YH6PTB", &total
	}
	return err
}

func (f fakeBulk) Change(_ context.Context, who, id string, action bulk.Action) error {
	return f.ask(func() { f.asked = who + " " + id + " " + string(action) })
}

func (f fakeBulk) Find(_ context.Context, id string) (*bulk.State, error) {
	return &bulk.State{Job: bulk.Job{ID: id, WorkflowID: "leave", Delete: true, Status: bulk.Running}, Done: 1, Failed: 1, Failures: []bulk.Failure{{InstanceID: "i", Error: "in use"}}}, f.ask()
}

func (f fakeBulk) List(context.Context) ([]*bulk.State, error) {
	return []*bulk.State{{Job: bulk.Job{ID: "j", WorkflowID: "leave", Event: "go", Status: bulk.Done}}}, f.ask()
}
