package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"troupe/actors/inventory"
	"troupe/cmd/internal/cli"
)

type sizes struct {
	*inventory.Sizes
	OfNode string `json:"ofNode,omitempty"`
}

var stats = &tool{name: "stats", use: func(ctx context.Context, j *job) error {
	found, err := inventory.Measure(ctx, j.Store, j.pace, j.say)
	if err != nil {
		return err
	}
	return j.line(sizes{found, j.ofNode(found.Shards)})
}}

func newStats() *cobra.Command {
	cmd := &cobra.Command{
		Use: "stats", Short: "Show what takes the space in the store",
		Long: `It counts the rows of each kind, and those of each workflow's instances, with the bytes of their keys and values. On disk tables are
compressed, and logs and deleted rows take space as well.`,
		Example: "  troupe store stats --home ./troupe-home",
	}
	var output *cli.Output
	cmd = command(cmd, stats, func(c *call) error {
		c.line = func(text json.RawMessage) error {
			if output.Form != cli.FormTable {
				return output.Document(text)
			}
			var found sizes
			if err := json.Unmarshal(text, &found); err != nil {
				return err
			}
			return showSizes(output, &found)
		}
		return nil
	})
	output = cli.AddOutput(cmd, cli.AnyForm...)
	return cmd
}

func showSizes(to *cli.Output, found *sizes) error {
	rows := [][]string{{"KIND", "ROWS", "BYTES", "SIZE"}}
	add := func(name string, s inventory.Size) {
		rows = append(rows, []string{name, strconv.FormatInt(s.Rows, 10), strconv.FormatInt(s.Bytes, 10), cli.SizeText(s.Bytes)})
	}
	for _, k := range found.Kinds {
		add(k.Kind, k.Size)
	}
	add("all", found.Total)
	if err := to.Table(rows); err != nil {
		return err
	}
	rows = [][]string{{"WORKFLOW", "INSTANCES", "ROWS", "BYTES", "SIZE"}}
	for _, w := range found.Workflows {
		rows = append(rows, []string{w.Workflow, strconv.FormatInt(w.Instances, 10), strconv.FormatInt(w.Rows, 10), strconv.FormatInt(w.Bytes, 10), cli.SizeText(w.Bytes)})
	}
	_, err := fmt.Fprintln(to.To)
	if err == nil {
		err = to.Table(rows)
	}
	if err == nil {
		_, err = fmt.Fprintf(to.To, "\n%s on disk\n", cli.SizeText(int64(found.DiskBytes))) //nolint:gosec // of a disk
	}
	if err == nil && found.OfNode != "" {
		_, err = fmt.Fprintln(to.To, found.OfNode)
	}
	return err
}
