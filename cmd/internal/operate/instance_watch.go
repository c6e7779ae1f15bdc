package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/gateway/api"
	"troupe/gateway/client"
)

func newInstanceWatch() *cobra.Command {
	var r client.WatchRequest
	var filter string
	cmd := &cobra.Command{
		Use:   "watch WORKFLOW [INSTANCE]",
		Short: "Follow what happens to instances, until interrupted",
		Long: "Follow what happens to the instances of a workflow, or to one, until interrupted. It reconnects by itself when the connection breaks. " +
			"When it ends, it prints on standard error how to resume.\n\n" +
			"With -o jsonl each line is {\"id\": position, \"event\": \"entry\" or \"lost\", \"data\": what the service sent}; lost says that entries are missing before it.",
		Example: "  troupe instance watch leave-request --filter '{\"states.nodeId\": \"review\"}'\n" +
			"  troupe instance watch leave-request 01M7YZAB2GNTJFQE62690KHSQT -o jsonl",
	}
	cmd.Flags().StringVar(&filter, "filter", "", "only instances that match: a JSON filter, @file, or - for standard input")
	cmd.Flags().StringVar(&r.LastEventID, "last-event-id", "", "resume after this position, which an earlier watch printed")
	return asking(cmd, []string{cli.FormLine, cli.FormJSONL}, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		text, err := cli.JsonInput(cmd, "filter", filter)
		if err != nil {
			return err
		}
		r.Filter, r.WorkflowID = string(text), args[0]
		if len(args) == 2 {
			r.InstanceID = args[1]
			if r.InstanceID == "" {
				return cli.Usagef("the instance is empty")
			}
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return follow(ctx, cmd.ErrOrStderr(), out, c, r)
	})
}

func follow(ctx context.Context, complaints io.Writer, out *cli.Output, c *client.Client, r client.WatchRequest) error {
	place := r.LastEventID
	r.Opened = func(id string) { place = id }
	r.Broken = func(err error, wait time.Duration) {
		_, _ = fmt.Fprintf(complaints, "%s; again in %v\n", client.Printable(err.Error()), wait.Round(time.Millisecond))
	}
	var failed error
	var seen *labels
	asked := false
	for n, err := range c.Watch(ctx, r) {
		if err == nil && !asked {
			asked = true
			seen, _ = labelsOf(ctx, c, out, r.WorkflowID, 0) // what cannot be had now is called by its id
		}
		if err == nil && n.Entry != nil && out.Form == cli.FormLine {
			entry := []api.HistoryEntry{n.Entry.Entry}
			markAttempts(ctx, c, r.WorkflowID, n.Entry.InstanceID, entry)
			n.Entry.Entry = entry[0]
		}
		if err == nil {
			err = showNotice(out, complaints, n, seen)
		}
		if err != nil {
			failed = err
			break
		}
		place = n.ID
	}
	if place != "" {
		_, _ = fmt.Fprintf(complaints, "to resume from here: --last-event-id %s\n", client.Printable(place))
	}
	if ctx.Err() != nil && errors.Is(failed, ctx.Err()) {
		return nil
	}
	return failed
}

func showNotice(o *cli.Output, complaints io.Writer, n *client.Notice, seen *labels) error {
	if o.Form == cli.FormJSONL {
		kind := api.WatchEntry
		if n.Entry == nil {
			kind = api.WatchLost
		}
		id, err := json.Marshal(n.ID)
		if err != nil {
			return err
		}
		// NB: not by json.Marshal, which would write the data with escapes of its own.
		return o.Line([]byte(`{"id":` + string(id) + `,"event":"` + kind + `","data":` + string(n.Raw) + `}`))
	}
	if n.Entry == nil {
		_, err := fmt.Fprintln(complaints, client.Printable(n.Lost))
		return err
	}
	e := n.Entry
	_, err := fmt.Fprintf(o.To, "%s %s #%d %s by %s: %s -> %s\n", timeText(e.Entry.Time), client.Printable(e.InstanceID), e.Sequence,
		client.Printable(attemptText(seen.eventText(&e.Entry), e.Entry.Attempt)), client.Printable(e.Entry.User), client.Printable(seen.nodeText(e.Entry.StartState)),
		client.Printable(seen.nodeText(e.Entry.EndState)))
	return err
}
