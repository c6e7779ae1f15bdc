// Command temporal answers the workflow interface with a workflow of Temporal for each
// instance: an event is an update, acknowledged when its handler has completed. The
// development server runs as a child process on a database file.
//
// That server's database is SQLite with one connection. By default it has a journal that is
// undone (journal_mode = delete) and synced with each commit. This program sets a log that is
// written ahead, synced with each commit too: three quarters more updates, as durable.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"troupe/bench/peers/leave"
)

// Names that client and worker share.
const (
	queue = "leave"
	begun = "begun" // the update that shows a new instance
	send  = "send"  // that of an event
)

var (
	pollers = flag.Int("pollers", 8, "goroutines of the worker that ask for tasks; the SDK's default is 2")
	pragmas = flag.String("pragmas", "journal_mode=wal,synchronous=full", "SQLite's pragmas, with commas; empty is the server's default")
)

func main() { os.Exit(leave.Main(open)) }

// refused is the type of a refusal of the update.
const refused = "refused"

// instance is the state of a workflow, which a run passes to the next.
type instance struct {
	Record  leave.Record
	History []leave.Entry
}

// begin returns a new instance.
func begin(public json.RawMessage, at time.Time) instance {
	record, entry := leave.New(public, at)
	return instance{record, []leave.Entry{entry}}
}

// leaveRequest is the workflow. It begins a new run when the server says that its history is
// long, and no update is under way.
func leaveRequest(ctx workflow.Context, i instance) error {
	err := workflow.SetUpdateHandler(ctx, begun, func(workflow.Context) (leave.Record, error) { return i.Record, nil })
	err2 := workflow.SetUpdateHandler(ctx, send, func(_ workflow.Context, e leave.Event) (leave.Record, error) {
		entry, err := i.Record.Apply(e)
		if err != nil {
			return i.Record, temporal.NewApplicationError(err.Error(), refused)
		}
		i.History = append(i.History, entry)
		return i.Record, nil
	})
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	err = workflow.Await(ctx, func() bool {
		return workflow.GetInfo(ctx).GetContinueAsNewSuggested() && workflow.AllHandlersFinished(ctx)
	})
	if err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(ctx, leaveRequest, i)
}

// peer is the client.
type peer struct{ client client.Client }

// Create implements leave.Peer. It waits until the workflow has taken its first step: starts
// alone pile up work, in which the updates that follow wait for seconds.
func (p *peer) Create(ctx context.Context, id string, public json.RawMessage, at time.Time) (record leave.Record, err error) {
	start := p.client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: id, TaskQueue: queue, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
	}, leaveRequest, begin(public, at))
	handle, err := p.client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions:          client.UpdateWorkflowOptions{WorkflowID: id, UpdateName: begun, WaitForStage: client.WorkflowUpdateStageCompleted},
	})
	if err == nil {
		err = handle.Get(ctx, &record)
	}
	return record, err
}

// Send implements leave.Peer.
func (p *peer) Send(ctx context.Context, id string, e leave.Event) (record leave.Record, err error) {
	handle, err := p.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: send, Args: []any{e}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, &record)
	}
	var missing *serviceerror.NotFound
	var fault *temporal.ApplicationError
	switch {
	case errors.As(err, &missing):
		err = leave.ErrNotFound
	case errors.As(err, &fault) && fault.Type() == refused:
		err = leave.ErrRefused
	}
	return record, err
}

// open starts the server and a worker.
func open(ctx context.Context, dir string) (leave.Peer, func(), error) {
	program, err := leave.Tool("bin/temporal")
	if err != nil {
		return nil, nil, err
	}
	addr, err := leave.FreeAddr()
	if err != nil {
		return nil, nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(program, "server", "start-dev", "--headless", "--log-level", "error", "--port", port, "--db-filename", filepath.Join(dir, "temporal.db"))
	for pragma := range strings.SplitSeq(*pragmas, ",") {
		if pragma != "" {
			cmd.Args = append(cmd.Args, "--sqlite-pragma", pragma)
		}
	}
	stopServer, err := leave.StartServer(cmd)
	if err != nil {
		return nil, nil, err
	}
	p := &peer{}
	quiet := log.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	err = leave.Ready(ctx, func(ctx context.Context) (err error) {
		p.client, err = client.DialContext(ctx, client.Options{HostPort: addr, Logger: quiet})
		if err == nil {
			_, err = p.client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: client.DefaultNamespace})
		}
		return err
	})
	if err != nil {
		return nil, stopServer, err
	}
	w := worker.New(p.client, queue, worker.Options{MaxConcurrentWorkflowTaskPollers: *pollers, DisableRegistrationAliasing: true})
	w.RegisterWorkflow(leaveRequest)
	stop := func() {
		w.Stop()
		p.client.Close()
		stopServer()
	}
	return p, stop, w.Start()
}
