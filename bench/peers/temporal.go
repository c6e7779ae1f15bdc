package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"troupe/bench/process"
)

// temporalQueue is where client and worker meet.
const temporalQueue = "orders"

// temporalPragmas are settings of the database of the development server, which is SQLite: a log that is written ahead, and synced with
// each commit. The journal that it has by default, synced too, had three fifths of the speed when events were measured.
var temporalPragmas = []string{"--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=full"}

// temporalPollers is how many goroutines of the worker ask for each kind of task. With 2, the default, events were slower.
const temporalPollers = 8

// The activities.
func reserveActivity(_ context.Context, o Order) (Reservation, error) { return reserve(o), nil }

func chargeActivity(_ context.Context, p Paid) (Receipt, error) { return charge(p), nil }

// runTemporal is the workflow with activities that any worker can do.
func runTemporal(ctx workflow.Context, o Order) (receipt Receipt, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	var reserved Reservation
	if err := workflow.ExecuteActivity(ctx, reserveActivity, o).Get(ctx, &reserved); err != nil {
		return receipt, err
	}
	err = workflow.ExecuteActivity(ctx, chargeActivity, Paid{o, reserved}).Get(ctx, &receipt)
	return receipt, err
}

// runTemporalLocal is the workflow with local activities, which the worker does in the task of the workflow itself.
func runTemporalLocal(ctx workflow.Context, o Order) (receipt Receipt, err error) {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute})
	var reserved Reservation
	if err := workflow.ExecuteLocalActivity(ctx, reserveActivity, o).Get(ctx, &reserved); err != nil {
		return receipt, err
	}
	err = workflow.ExecuteLocalActivity(ctx, chargeActivity, Paid{o, reserved}).Get(ctx, &receipt)
	return receipt, err
}

func dialTemporal(ctx context.Context, server string) (client.Client, error) {
	quiet := log.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	return client.DialContext(ctx, client.Options{HostPort: server, Logger: quiet})
}

// temporalWorker does workflows and activities until ctx ends.
func temporalWorker(ctx context.Context, server string) error {
	c, err := dialTemporal(ctx, server)
	if err != nil {
		return err
	}
	defer c.Close()
	w := worker.New(c, temporalQueue, worker.Options{MaxConcurrentWorkflowTaskPollers: temporalPollers, MaxConcurrentActivityTaskPollers: temporalPollers})
	w.RegisterWorkflow(runTemporal)
	w.RegisterWorkflow(runTemporalLocal)
	w.RegisterActivity(reserveActivity)
	w.RegisterActivity(chargeActivity)
	if err := w.Start(); err != nil {
		return err
	}
	<-ctx.Done()
	w.Stop()
	return nil
}

// startTemporal starts a workflow, one of the two above.
func startTemporal(of func(workflow.Context, Order) (Receipt, error)) func(ctx context.Context, s *started) error {
	return func(ctx context.Context, s *started) error {
		addr, err := process.FreeAddr()
		if err != nil {
			return err
		}
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return err
		}
		args := append([]string{"server", "start-dev", "--headless", "--log-level", "error", "--port", port, "--db-filename", s.dir + "/temporal.db"}, temporalPragmas...)
		if err := s.begin(ctx, nil, s.program, args...); err != nil {
			return err
		}
		var c client.Client
		err = s.ready(ctx, func(ctx context.Context) (err error) {
			if c, err = dialTemporal(ctx, addr); err == nil {
				_, err = c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: client.DefaultNamespace})
			}
			return err
		})
		if err != nil {
			return err
		}
		s.closers = append(s.closers, c.Close)
		s.run = func(ctx context.Context, orders []Order) error {
			o := orders[0]
			run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: o.Number, TaskQueue: temporalQueue}, of, o)
			if err != nil {
				return err
			}
			var receipt Receipt
			if err := run.Get(ctx, &receipt); err != nil {
				return err
			}
			return checkReceipt(o, receipt)
		}
		return s.worker(ctx, "temporal", addr)
	}
}
