// Package work has the commands of jobs: those that list and change them, and a worker that runs a program for each.
package work

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/connect"
	"troupe/gateway/api"
	"troupe/gateway/client"
)

// Commands are job and worker.
func Commands() []*cobra.Command { return []*cobra.Command{newJob(), newWorker()} }

func newJob() *cobra.Command {
	return cli.Group("job", "Show and change jobs: work of instances for programs",
		"  troupe job list --state failed\n  troupe job retry 01M7YZAB2GNTJFQE62690KHSQT-3-0",
		newJobList(), newJobShow(),
		newJobChange("retry", "Give failed jobs all their attempts again", (*client.Client).RetryJobs),
		newJobChange("cancel", "End jobs as failed for good", (*client.Client).CancelJobs),
		newJobResume())
}

func newJobResume() *cobra.Command {
	cmd := &cobra.Command{
		Use: "resume", Short: "Give jobs to programs after a restore (needs mod-workflows)",
		Long: `A store that was restored from a backup gives no job to a program until then, so that a copy of a store does not have done what
the original has done. Cancel what must not be done again first.`,
		Example: "  troupe job resume --home ./troupe-home",
	}
	return asking(cmd, func(cmd *cobra.Command, c *client.Client, _ []string) error { return c.ResumeJobs(cmd.Context()) })
}

// asking makes cmd a command that asks the service.
func asking(cmd *cobra.Command, do func(cmd *cobra.Command, c *client.Client, args []string) error) *cobra.Command {
	at := connect.AddFlags(cmd)
	at.AddHome(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := at.Client(0)
		if err != nil {
			return err
		}
		defer c.Close()
		return connect.Explain(do(cmd, c, args))
	}
	connect.Complete(cmd, at)
	return cmd
}

var jobHead = []string{"ID", "TYPE", "STATE", "WORKFLOW", "INSTANCE", "NODE", "ATTEMPTS", "LEFT", "CREATED", "DUE", "WORKER", "MESSAGE"}

func jobRow(j *api.ListedJob) []string {
	return []string{
		j.JobID, j.Type, j.State, j.WorkflowID, j.InstanceID, j.NodeID, strconv.Itoa(j.Attempts), strconv.Itoa(j.AttemptsLeft), j.Created,
		orNone(cmp.Or(j.Deadline, j.Due)), orNone(j.Worker), orNone(j.Message),
	}
}

func orNone(text *string) string {
	if text == nil {
		return "-"
	}
	return *text
}

func newJobList() *cobra.Command {
	var r client.JobsRequest
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List jobs (needs mod-workflows or mod-jobs)",
		Long:    "DUE is when the lease ends of a job that runs, and when the next attempt begins of one that waits for it.",
		Example: "  troupe job list --type charge-card --state failed -o json",
	}
	f := cmd.Flags()
	f.StringVar(&r.Type, "type", "", "only jobs of this type")
	f.StringVar(&r.State, "state", "", "only jobs in this state: waiting, running or failed")
	f.StringVar(&r.WorkflowID, "workflow", "", "only jobs of this workflow")
	f.IntVar(&r.Limit, "limit", 100, "entries per page, 1 to 1000")
	f.BoolVar(&all, "all", false, "all pages")
	cli.OneOf(cmd, "state", "waiting", "running", "failed")
	out := cli.AddOutput(cmd, cli.FormTable, cli.FormJSON, cli.FormJSONL)
	return asking(cmd, func(cmd *cobra.Command, c *client.Client, _ []string) error {
		var jobs []api.ListedJob
		for page, err := range c.JobsPages(cmd.Context(), r) {
			if err != nil {
				return err
			}
			if jobs = append(jobs, page.Items...); !all && len(jobs) >= r.Limit {
				break
			}
		}
		return cli.WriteList(cmd, out, "jobs", jobHead, jobs, jobRow)
	})
}

func newJobShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a job (needs mod-workflows or mod-jobs)",
		Example: "  troupe job show 01M7YZAB2GNTJFQE62690KHSQT-3-0",
	}
	out := cli.AddOutput(cmd, cli.FormTable, cli.FormJSON)
	return asking(cmd, func(cmd *cobra.Command, c *client.Client, args []string) error {
		job, err := c.Job(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if out.Form != cli.FormTable {
			return out.Document(job.Raw)
		}
		rows := [][]string{}
		for i, text := range jobRow(&job.ListedJob) {
			rows = append(rows, []string{jobHead[i], text})
		}
		if job.Data != nil {
			rows = append(rows, []string{"DATA", string(job.Data)})
		}
		return out.Table(rows)
	})
}

func newJobChange(action, short string, change func(c *client.Client, ctx context.Context, ids ...string) ([]error, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use: action + " ID...", Short: short + " (needs mod-workflows or mod-jobs)",
		Example: "  troupe job " + action + " 01M7YZAB2GNTJFQE62690KHSQT-3-0",
	}
	return asking(cmd, func(cmd *cobra.Command, c *client.Client, args []string) error {
		errs, err := change(c, cmd.Context(), args...)
		for i, one := range errs {
			if one != nil {
				err = errors.Join(err, namedError{args[i], one})
			}
		}
		return err
	})
}
