package operate

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/gateway/api"
	"troupe/gateway/client"
)

func newBulk() *cobra.Command {
	return cli.Group("bulk", "Send an event to many instances, migrate, reset or delete them, in the background",
		"  troupe bulk start invoice --filter '{\"states.nodeId\": \"review\"}' --event remind --dry-run\n"+
			"  troupe bulk show 01KDW1X4G3R7NAE5J8Q2YH6PTB",
		newBulkStart(), newBulkList(), newBulkShow(),
		newBulkChange("pause", "Pause bulk jobs"), newBulkChange("resume", "Resume bulk jobs"), newBulkChange("cancel", "End bulk jobs for good"))
}

func newBulkStart() *cobra.Command {
	var filter, event, eventData, plan string
	var reset api.ResetRequest
	remove, all, dryRun := false, false, false
	cmd := &cobra.Command{
		Use: "start WORKFLOW", Short: "Start a bulk job (needs mod-workflows)",
		Long: `Every instance that exists now has its turn once, and counts if it matches the filter then. The job acts as you, and
goes on when the service restarts. Prints the id of the job and how many instances match. An event goes to instances that
you may read, and so does a reset; to migrate or delete by data you need the right to read all of the workflow.`,
		Example: "  troupe bulk start invoice --filter '{\"states.nodeId\": \"review\"}' --event remind --data '{\"by\": \"mail\"}'\n" +
			"  troupe bulk start invoice --plan plan.yaml\n" +
			"  troupe bulk start invoice --filter '{\"states.nodeId\": \"failed\"}' --to 3 --reason 'the bank was away'\n" +
			"  troupe bulk start invoice --filter '{\"states.nodeId\": \"closed\"}' --delete --dry-run",
	}
	cmd.Flags().StringVar(&filter, "filter", "", "only matching instances: a JSON filter, @file or -")
	cmd.Flags().StringVar(&event, "event", "", "send each this event")
	cmd.Flags().StringVar(&eventData, "data", "", "data of the event: a JSON object, @file or -")
	cmd.Flags().StringVar(&plan, "plan", "", "migrate each by this plan: a file, YAML or JSON")
	cmd.Flags().Var(cli.Sequence(&reset.To), "to", "reset each to what it was after this entry of its history, from 1")
	cmd.Flags().StringVar(&reset.Reason, "reason", "", "with --to: why; the histories keep it")
	cmd.Flags().BoolVar(&remove, "delete", false, "delete each with everything stored of it")
	cmd.Flags().BoolVar(&all, "all", false, "with --delete or --to and no --filter: all instances of the workflow")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only count the matching instances")
	return operating(cmd, []string{cli.FormTable, cli.FormJSON}, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		request := &api.BulkRequest{WorkflowID: args[0], DryRun: dryRun, Action: api.BulkAction{Delete: remove}}
		asked := slices.DeleteFunc([]bool{event != "", plan != "", reset.To != 0, remove}, func(is bool) bool { return !is })
		switch {
		case len(asked) == 0:
			return cli.Usagef("one of --event, --plan, --to and --delete is required")
		case len(asked) > 1:
			return cli.Usagef("only one of --event, --plan, --to and --delete is possible")
		case all && (!remove && reset.To == 0 || filter != ""):
			return cli.Usagef("--all is for --delete or --to without --filter")
		case remove && filter == "" && !all:
			return cli.Usagef("--delete needs --filter, or --all for all instances of %s", args[0])
		case (reset.To != 0) != (reset.Reason != ""):
			return cli.Usagef("--to needs --reason, which is for it alone")
		case reset.To != 0 && filter == "" && !all:
			return cli.Usagef("--to needs --filter, or --all for all instances of %s", args[0])
		case eventData != "" && event == "":
			return cli.Usagef("--data is the data of --event, which is missing")
		}
		if reset.To != 0 {
			request.Action.Reset = &reset
		}
		var err error
		if request.Filter, err = cli.JsonInput(cmd, "filter", filter); err != nil {
			return err
		}
		if all {
			request.Filter = json.RawMessage("{}")
		}
		brought, err := cli.JsonInput(cmd, "data", eventData)
		if err != nil {
			return err
		}
		if event != "" {
			request.Action.Event = &api.BulkEvent{Name: event, Data: brought}
		}
		if plan != "" {
			if request.Action.Migrate, err = bulkMigration(plan); err != nil {
				return err
			}
		}
		created, err := c.StartBulk(cmd.Context(), request)
		if refused := (*client.Error)(nil); errors.As(err, &refused) && len(refused.Faults) > 0 {
			return planFaults(plan, refused.Faults)
		}
		if err != nil {
			return err
		}
		if (event != "" || reset.To != 0) && created.Count != nil && *created.Count == 0 {
			fmt.Fprintln(cmd.ErrOrStderr(), "No instance that you may read matches.")
		}
		return showBulkCreated(out, created)
	})
}

func showBulkCreated(out *cli.Output, created *client.BulkCreated) error {
	if out.Form != cli.FormTable {
		return out.Document(created.Raw)
	}
	id := "-"
	if created.ID != nil {
		id = *created.ID
	}
	return out.Table([][]string{{"ID", "INSTANCES"}, {id, countOf(created.Count)}})
}

func bulkMigration(file string) (*api.BulkMigration, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	quoted, err := json.Marshal(string(text))
	return &api.BulkMigration{Plan: quoted}, err
}

func countOf(n *int64) string {
	if n == nil {
		return "many"
	}
	return strconv.FormatInt(*n, 10)
}

func newBulkList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the last 100 bulk jobs of all users (needs mod-workflows)",
		Example: "  troupe bulk list -o json",
	}
	return operating(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, _ []string) error {
		list, err := c.BulkJobs(cmd.Context())
		if err != nil {
			return err
		}
		l := &lister{cmd: cmd, out: out, member: "bulk", things: "bulk jobs", head: bulkHead}
		return l.one(pageOf(list.Raw, "", list.Bulk, bulkRow))
	})
}

var bulkHead = []string{"ID", "WORKFLOW", "ACTION", "USER", "CREATED", "STATUS", "DONE", "FAILED", "TOTAL"}

func bulkRow(j *api.BulkJob) []string {
	action := j.Action
	if j.Event != "" {
		action += " " + j.Event
	}
	if j.Reset != nil {
		action += " to " + strconv.FormatUint(j.Reset.To, 10)
	}
	return []string{j.ID, j.WorkflowID, action, j.User, j.Created, j.Status, strconv.FormatInt(j.Done, 10), strconv.FormatInt(j.Failed, 10), countOf(j.Total)}
}

func newBulkShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show the progress of a bulk job and its first 100 failures (needs mod-workflows)",
		Example: "  troupe bulk show 01KDW1X4G3R7NAE5J8Q2YH6PTB",
	}
	return operating(cmd, []string{cli.FormTable, cli.FormJSON}, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		job, err := c.BulkJob(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if out.Form != cli.FormTable {
			return out.Document(job.Raw)
		}
		rows := [][]string{}
		for i, text := range bulkRow(&job.BulkJob) {
			rows = append(rows, []string{bulkHead[i], text})
		}
		if job.Reset != nil {
			rows = append(rows, []string{"REASON", job.Reset.Reason})
		}
		if err := out.Table(rows); err != nil || len(job.Failures) == 0 {
			return err
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout()); err != nil {
			return err
		}
		rows = [][]string{{"INSTANCE", "ERROR"}}
		for _, f := range job.Failures {
			rows = append(rows, []string{f.InstanceID, f.Error})
		}
		return out.Table(rows)
	})
}

func newBulkChange(action, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use: action + " ID...", Short: short + " (needs mod-workflows)",
		Long:    "It takes effect within seconds. Instances whose turn has begun are finished.",
		Example: "  troupe bulk " + action + " 01KDW1X4G3R7NAE5J8Q2YH6PTB",
	}
	return operating(cmd, nil, func(cmd *cobra.Command, c *client.Client, _ *cli.Output, args []string) error {
		return each(args, func(id string) error { return c.ChangeBulk(cmd.Context(), id, action) })
	})
}
