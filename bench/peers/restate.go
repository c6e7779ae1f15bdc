package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/ingress"
	"github.com/restatedev/sdk-go/server"

	"troupe/bench/process"
)

// restateSettings are what differs from the defaults of the server, for a small machine. Of 1, 2, 4 and 24 partitions, the default, one was
// the fastest when events were measured. The server syncs its log before it answers, which is its default.
var restateSettings = map[string]string{
	"RESTATE_DEFAULT_NUM_PARTITIONS":    "1",
	"RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE": "1GiB",
	"RESTATE_LOG_FILTER":                "warn",
	"RESTATE_DISABLE_TELEMETRY":         "true",
	"RESTATE_LISTEN_MODE":               "tcp",
}

const restateService = "Order"

// runRestate is the workflow.
func runRestate(ctx restate.WorkflowContext, o Order) (Receipt, error) {
	reserved, err := restate.Run(ctx, func(restate.RunContext) (Reservation, error) { return reserve(o), nil }, restate.WithName("reserve"))
	if err != nil {
		return Receipt{}, err
	}
	return restate.Run(ctx, func(restate.RunContext) (Receipt, error) { return charge(Paid{o, reserved}), nil }, restate.WithName("charge"))
}

// restateWorker serves the workflow to the server until ctx ends.
func restateWorker(ctx context.Context, listen string) error {
	workflow := restate.NewWorkflow(restateService).Handler("run", restate.NewWorkflowHandler(runRestate))
	quiet := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})
	return server.NewRestate().WithLogger(quiet, true).Bind(workflow).Start(ctx, listen)
}

func startRestate(ctx context.Context, s *started) error {
	var err error
	var addrs [4]string // of ingress, administration, node and worker
	for i := range addrs {
		if addrs[i], err = process.FreeAddr(); err != nil {
			return err
		}
	}
	settings := []string{"RESTATE_INGRESS__BIND_ADDRESS=" + addrs[0], "RESTATE_ADMIN__BIND_ADDRESS=" + addrs[1], "RESTATE_BIND_ADDRESS=" + addrs[2]}
	for name, value := range restateSettings {
		settings = append(settings, name+"="+value)
	}
	args := append(settings, s.program, "--no-logo", "--node-name", "one", "--base-dir", s.dir+"/restate")
	if err := s.begin(ctx, nil, "env", args...); err != nil {
		return err
	}
	if err := s.worker(ctx, "restate", addrs[3]); err != nil {
		return err
	}
	err = s.ready(ctx, func(ctx context.Context) error {
		return post(ctx, "http://"+addrs[1]+"/deployments", `{"uri":"http://`+addrs[3]+`"}`)
	})
	client := ingress.NewClient("http://"+addrs[0], ingress.WithHttpClient(newHTTP()))
	s.run = func(ctx context.Context, orders []Order) error {
		receipt, err := ingress.Workflow[Order, Receipt](client, restateService, orders[0].Number, "run").Request(ctx, orders[0])
		if err != nil {
			return err
		}
		return checkReceipt(orders[0], receipt)
	}
	return err
}

// post sends JSON and requires a status of 2xx.
func post(ctx context.Context, url, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := newHTTP().Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}
