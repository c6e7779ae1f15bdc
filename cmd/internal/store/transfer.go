package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"troupe/actors/transfer"
	"troupe/cmd/internal/cli"
	"troupe/gateway/client"
)

// exported is a part of the result: a line of the file, what was left out, or at the end what was written.
type exported struct {
	Instance json.RawMessage    `json:"instance,omitempty"`
	Left     string             `json:"left,omitempty"`
	Report   *transfer.Exported `json:"report,omitempty"`
	OfNode   string             `json:"ofNode,omitempty"`
}

var export = &tool{name: "export", use: func(ctx context.Context, j *job) error {
	var failed error
	report, err := transfer.Export(ctx, j.Store, j.Catalog, j.pace, func(text json.RawMessage) error {
		return j.line(exported{Instance: text})
	}, func(what string) { failed = errors.Join(failed, j.line(exported{Left: what})) }, j.say)
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	return j.line(exported{Report: &report, OfNode: j.ofNode(report.Shards)})
}}

func newExport() *cobra.Command {
	cmd := &cobra.Command{
		Use: "export", Short: "Write all instances with their history as JSON lines",
		Long: `A line is an instance with everything that is its own, so that troupe store import makes the same instance of it in another home: record,
history, drafts, deliveries, comments and decided tasks. The first line names the definitions that they have, and the last
how many instances there are. All are of one moment. What cannot be read is left out; then the exit code is 1.`,
		Example: "  troupe store export --home ./troupe-home > instances.jsonl",
	}
	cmd = command(cmd, export, func(c *call) error {
		c.line = c.writeExported
		return nil
	})
	cli.AddOutput(cmd, cli.FormJSONL)
	return cmd
}

func (c *call) writeExported(text json.RawMessage) error {
	var e exported
	err := json.Unmarshal(text, &e)
	switch {
	case err != nil:
	case e.Instance != nil:
		_, err = c.OutOrStdout().Write(append(e.Instance, '\n'))
	case e.Left != "":
		_, err = fmt.Fprintf(c.ErrOrStderr(), "left out: %s\n", client.Printable(e.Left))
	default:
		if e.OfNode != "" {
			_, err = fmt.Fprintln(c.ErrOrStderr(), e.OfNode)
		}
		if err == nil && e.Report.Left > 0 {
			err = fmt.Errorf("%d instances were written, and %d lines of what could not be read are above", e.Report.Instances, e.Report.Left)
		}
	}
	return err
}

// imported is the result, and why it ended early.
type imported struct {
	transfer.Imported
	Failed string `json:"failed,omitempty"`
}

var importing = &tool{name: "import", writes: true, use: func(ctx context.Context, j *job) error {
	report, err := transfer.Import(ctx, j.Store, j.Catalog, j.in, j.Running, j.say)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	result := imported{Imported: report}
	if err != nil {
		result.Failed = err.Error()
	}
	return j.line(result)
}}

func newImport() *cobra.Command {
	return command(&cobra.Command{
		Use: "import [FILE]", Short: "Add the instances that troupe store export has written",
		Long: `It reads the file, or standard input, and adds the instances that the home does not have, each wholly in one commit. Nothing is changed of
those that it has. Their definitions must be published in the home, in the same versions with the same content.

Timers that are due fire, and deliveries that waited are sent, unless they are paused. A line that is not right ends the
import with its number; what was interrupted can be done again. On a node of a cluster, instances are added that belong to
shards which this node leads: import the file on each node.`,
		Example: "  troupe store import --home ./troupe-home instances.jsonl\n  troupe store export --home ./old | troupe store import --home ./new",
	}, importing, func(c *call) error {
		c.in = func(args []string) (io.ReadCloser, error) {
			if len(args) == 0 || args[0] == "-" {
				return io.NopCloser(c.InOrStdin()), nil
			}
			return os.Open(args[0])
		}
		c.line = func(text json.RawMessage) error {
			var r imported
			if err := json.Unmarshal(text, &r); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "imported %d instances, skipped %d that were there\n", r.Imported.Imported, r.Skipped)
			switch {
			case err != nil:
				return err
			case r.Failed != "":
				return errors.New(r.Failed)
			case r.Elsewhere > 0:
				return fmt.Errorf("%d instances belong to shards that other nodes lead: import the file there as well", r.Elsewhere)
			}
			return nil
		}
		return nil
	})
}
