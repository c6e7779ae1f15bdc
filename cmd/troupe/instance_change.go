package main

import (
	"errors"

	"github.com/spf13/cobra"

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
		Args: usage(cobra.ExactArgs(1)),
	}
	cmd.Flags().StringVar(&public, "public", "", "svcPublic: a JSON object, @file, or - for standard input")
	cmd.Flags().StringVar(&private, "private", "", "svcPrivate: a JSON object, @file, or - for standard input")
	cmd.Flags().StringVar(&key, "key", "", "idempotency key (default: generated)")
	at, out := addConnection(cmd), addOutput(cmd, formTable, formJSON, formJSONL, formYAML)
	cmd.RunE = asking(at, out, func(cmd *cobra.Command, c *client.Client, args []string) error {
		// A table shows no history of what is new.
		r := client.CreateRequest{WorkflowID: args[0], Key: key, Minimal: out.form == formTable}
		err := checkJSONFlags(public, private)
		if err == nil {
			r.Public, err = jsonInput(cmd, "public", public)
		}
		if err == nil {
			r.Private, err = jsonInput(cmd, "private", private)
		}
		if err != nil {
			return err
		}
		i, err := c.Create(cmd.Context(), r)
		if err != nil {
			return err
		}
		return out.show(i)
	})
	return cmd
}

func newInstanceSend() *cobra.Command {
	var eventData, key string
	var ifMatch uint64
	cmd := &cobra.Command{
		Use:   "send WORKFLOW INSTANCE EVENT",
		Short: "Send an event to an instance",
		Long: "Send an event to an instance. It is sent once, however often the request has to be repeated: the command generates an idempotency key. " +
			"With --key you choose the key, so that the command itself can be repeated.",
		Example: "  troupe instance send leave-request 01M7YZAB2GNTJFQE62690KHSQT submit --data '{\"days\": 5}'\n" +
			"  troupe instance send leave-request 01M7YZAB2GNTJFQE62690KHSQT approve --if-match 2",
		Args: usage(cobra.ExactArgs(3)),
	}
	cmd.Flags().StringVar(&eventData, "data", "", "event.data: a JSON object, @file, or - for standard input")
	cmd.Flags().StringVar(&key, "key", "", "idempotency key (default: generated)")
	cmd.Flags().Uint64Var(&ifMatch, "if-match", 0, "refuse the event unless the instance has this sequence number")
	at, out := addConnection(cmd), addOutput(cmd, formTable, formJSON, formJSONL, formYAML)
	cmd.RunE = asking(at, out, func(cmd *cobra.Command, c *client.Client, args []string) error {
		if ifMatch == 0 && cmd.Flags().Changed("if-match") {
			return usageError{errors.New("--if-match: sequence numbers begin with 1")}
		}
		body, err := jsonInput(cmd, "data", eventData)
		if err != nil {
			return err
		}
		i, err := c.Send(cmd.Context(), client.SendRequest{
			WorkflowID: args[0], InstanceID: args[1], Event: args[2], Data: body,
			IfMatch: ifMatch, Key: key, Minimal: out.form == formTable,
		})
		if err != nil {
			return err
		}
		return out.show(i)
	})
	return cmd
}
