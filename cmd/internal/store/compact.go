package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/homedir"
	"troupe/persistence"
)

var compact = &tool{name: "compact", writes: true, use: func(ctx context.Context, j *job) error {
	report, err := j.Store.Compact(ctx, j.say)
	if err != nil {
		return err
	}
	return j.line(report)
}}

func newCompact() *cobra.Command {
	return command(&cobra.Command{
		Use: "compact", Short: "Rewrite the store without what was deleted",
		Long: `Afterwards no byte of what was deleted before is in a file of the store: tables are written again, old logs are emptied, and a node of a
cluster drops the entries of its logs that it has applied. It needs as much free space as the tables take. It works beside
the requests of a running server, and waits for long reads that began before.

In a cluster each node has its own store: run it on every node. Backups are not changed.`,
		Example: "  troupe store compact --home ./troupe-home",
	}, compact, func(c *call) error {
		offline := !homedir.IsServed(c.Context(), c.config.Home)
		c.line = func(text json.RawMessage) error {
			var r persistence.CompactReport
			if err := json.Unmarshal(text, &r); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s (%s) are now %s (%s)\n", cli.Plural(r.TablesBefore, "table"), cli.SizeText(r.BytesBefore), cli.Plural(r.TablesAfter, "table"), cli.SizeText(r.BytesAfter))
			if err == nil && !offline {
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s may still name the first and last keys of former tables; the second start of the server from now removes the last of them\n", strings.Join(r.Manifests, " and "))
			}
			return err
		}
		c.after = c.reopen
		return nil
	})
}

// reopen has Pebble begin a new MANIFEST twice, and so remove those that name former tables.
func (c *call) reopen() error {
	for range 2 {
		store, err := c.config.OpenStore(c.config.Logger())
		if err != nil {
			return err
		}
		if err := store.Close(); err != nil {
			return err
		}
	}
	return nil
}
