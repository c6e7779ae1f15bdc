package operate

import (
	"context"
	"fmt"
	"os/signal"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/gateway/client"
)

func newInstanceCreate() *cobra.Command {
	var public, private, key string
	cmd := &cobra.Command{
		Use:   "create WORKFLOW",
		Short: "Make an instance",
		Long: "Make an instance. It is made once, however often the request has to be repeated: the command generates an idempotency key. " +
			"With --key you choose the key, so that the command itself can be repeated.",
		Example: "  troupe instance create leave-request --public '{\"from\": \"2026-12-21\"}'\n" +
			"  troupe instance create leave-request --public @leave.json --key leave-2026-12 -o json",
	}
	cmd.Flags().StringVar(&public, "public", "", "svcPublic: a JSON object, @file, or - for standard input")
	cmd.Flags().StringVar(&private, "private", "", "svcPrivate: a JSON object, @file, or - for standard input")
	cmd.Flags().StringVar(&key, "key", "", "idempotency key (default: generated)")
	return asking(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		// A table shows no history of what is new.
		r := client.CreateRequest{WorkflowID: args[0], Key: key, Minimal: out.Form == cli.FormTable}
		var err error
		if public == "-" && private == "-" {
			return cli.Usagef("standard input can be read once")
		}
		r.Public, err = cli.JsonInput(cmd, "public", public)
		if err == nil {
			r.Private, err = cli.JsonInput(cmd, "private", private)
		}
		if err != nil {
			return err
		}
		i, err := c.Create(cmd.Context(), r)
		if err != nil {
			return err
		}
		return showChanged(cmd.Context(), c, out, i)
	})
}

func newInstanceSend() *cobra.Command {
	var eventData, key, file string
	var ifMatch uint64
	cmd := &cobra.Command{
		Use:   "send WORKFLOW INSTANCE EVENT",
		Short: "Send an event to an instance, or many from a file",
		Long: "Send an event to an instance. It is sent once, however often the request has to be repeated: the command generates an idempotency key. " +
			"With --key you choose the key, so that the command itself can be repeated.\n\n" +
			"With --file it sends many: each item of the file is {\"workflowId\", \"instanceId\", \"event\": {\"name\", \"data\", \"id\"}}, or {\"workflowId\", \"data\"} to make an instance. " +
			"What was refused is listed, and makes the exit code 1. With the same --key the same file can be sent again after an interruption: what was done is not done twice. " +
			"Without --key one is generated, and shown where it is needed.",
		Example: "  troupe instance send leave-request 01M7YZAB2GNTJFQE62690KHSQT submit --data '{\"days\": 5}'\n" +
			"  troupe instance send leave-request 01M7YZAB2GNTJFQE62690KHSQT approve --if-match 2\n" +
			"  troupe instance send --file events.ndjson --key import-2026-12",
		Args: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				return cli.Arguments(cmd, args)
			}
			if len(args) > 0 || cmd.Flags().Changed("data") || cmd.Flags().Changed("if-match") {
				return cli.Usagef("--file says everything: no arguments, --data or --if-match beside it")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "file with many items, one JSON object a line or in an array; - for standard input")
	cmd.Flags().StringVar(&eventData, "data", "", "event.data: a JSON object, @file, or - for standard input")
	cmd.Flags().StringVar(&key, "key", "", "idempotency key (default: generated)")
	cmd.Flags().Var(cli.Sequence(&ifMatch), "if-match", "refuse the event unless the instance has this sequence number")
	return asking(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		if file != "" {
			if key == "" {
				key = client.NewKey()
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), cli.EndSignals()...)
			defer stop()
			context.AfterFunc(ctx, stop) // the second one ends it at once
			cmd.SetContext(ctx)
			s := &sendFile{cmd: cmd, client: c, key: key, live: cli.NewLiveLine(cmd.ErrOrStderr()), began: time.Now(), Created: []createdItem{}, Failures: []failedItem{}}
			return s.run(file, out)
		}
		body, err := cli.JsonInput(cmd, "data", eventData)
		if err != nil {
			return err
		}
		r := client.SendRequest{WorkflowID: args[0], InstanceID: args[1], Event: args[2], Data: body, IfMatch: ifMatch, Key: key}
		var before *client.Instance
		if out.Form == cli.FormTable { // which shows no history
			r.Minimal = true
			before = lookBefore(cmd.Context(), c, &r)
		}
		i, err := c.Send(cmd.Context(), r)
		if err != nil {
			return err
		}
		if stayed(&r, before, i) {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s moved no state: the states are as before; troupe instance events %s %s lists what moves it now\n",
				client.Printable(r.Event), client.Printable(i.WorkflowID), client.Printable(i.ID))
		}
		return showChanged(cmd.Context(), c, out, i)
	})
}

const lookMax = 2 * time.Second

// lookBefore returns the instance without its history as it is before the event, for stayed alone; nil when that cannot
// be had.
func lookBefore(ctx context.Context, c *client.Client, r *client.SendRequest) *client.Instance {
	ctx, cancel := context.WithTimeout(ctx, lookMax)
	defer cancel()
	before, err := c.Instance(ctx, client.InstanceRequest{WorkflowID: r.WorkflowID, InstanceID: r.InstanceID, Minimal: true})
	if err != nil {
		return nil
	}
	return before
}

// stayed reports whether the event left all machines in the states where they were. It knows from the history, where
// after has one: an ignored event leaves no entry. Otherwise it knows from a look before, and says false without one.
func stayed(r *client.SendRequest, before, after *client.Instance) bool {
	if len(after.History) > 0 {
		last := after.History[len(after.History)-1]
		return last.TransitionEvent != r.Event || slices.Equal(last.StartState, last.EndState)
	}
	if before == nil || before.Sequence == 0 {
		return false
	}
	if after.Sequence == before.Sequence { // it was ignored, or is a repetition
		return r.Key == ""
	}
	return after.Sequence == before.Sequence+1 && slices.Equal(after.States, before.States)
}
