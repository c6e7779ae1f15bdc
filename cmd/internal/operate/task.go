package operate

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/gateway/api"
	"troupe/gateway/client"
)

const exampleTask = "01M7YZAB2GNTJFQE62690KHSQT-2-0"

func newTask() *cobra.Command {
	return cli.Group("task", "List, claim and complete tasks",
		"  troupe task list\n"+
			"  troupe task do "+exampleTask+" approve --comment 'Enjoy it.'",
		newTaskList(), newTaskShow(), newTaskDo(),
		newTaskChange(client.ClaimTask, "Claim tasks, so that nobody else acts on them"),
		newTaskChange(client.ReleaseTask, "Release tasks to all candidates"),
		newTaskAssign())
}

func newTaskList() *cobra.Command {
	var r client.TasksRequest
	all := false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List your tasks",
		Long: `Lists the tasks assigned to you and the unassigned ones that you can claim. With --scope every, holders of
mod-workflows list all open tasks, with the state in place of the title.`,
		Example: "  troupe task list\n" +
			"  troupe task list --scope mine --sort -priority\n" +
			"  troupe task list --query 'laptop john' -o json",
	}
	f := cmd.Flags()
	f.StringVar(&r.Scope, "scope", "", "mine: assigned to you; open: unassigned; all: both (default); done: completed by you; every: all open tasks (needs mod-workflows)")
	f.StringVar(&r.WorkflowID, "workflow", "", "only tasks of one workflow")
	f.StringVar(&r.Filter, "filter", "", "filter over the fields of a task and the svcPublic of its instance")
	f.StringVar(&r.Query, "query", "", "words that the title, requester or id must contain")
	f.StringVar(&r.Sort, "sort", "", "due (default), created, priority or title; - in front of it: descending")
	f.BoolVar(&r.Count, "count", false, "also print the total")
	f.IntVar(&r.Limit, "limit", 50, "tasks per page, 1 to 1000")
	f.BoolVar(&all, "all", false, "all pages")
	cli.OneOf(cmd, "scope", "mine", "open", "all", "done", "every")
	cli.OneOf(cmd, "sort", "due", "-due", "created", "-created", "priority", "-priority", "title", "-title")
	f.StringVar(&r.Cursor, "cursor", "", "continue where an earlier page ended")
	return asking(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, _ []string) error {
		l := &lister{cmd: cmd, out: out, member: "tasks", things: "tasks", head: []string{"ID", "TITLE", "WORKFLOW", "REQUESTER", "STATUS", "ASSIGNEE", "DUE"}}
		row := func(t *api.Task) []string {
			return []string{t.TaskID, t.Title, t.WorkflowID, shownText(t.RequesterName), t.Status, shownText(t.Assignee), shownText(t.Due)}
		}
		if r.Scope == client.EveryTask { // they see whose the tasks are, and not what they are about
			l.head = []string{"ID", "STATE", "WORKFLOW", "FOR", "ASSIGNEE", "CREATED", "DUE"}
			row = func(t *api.Task) []string {
				return []string{t.TaskID, t.Title, t.WorkflowID, candidatesText(t), shownText(t.Assignee), t.Created, shownText(t.Due)}
			}
		}
		return list(l, all, r, c.Tasks, c.TasksPages, func(page *client.Page[api.Task]) *listPage {
			p := pageOf(page.Raw, page.Next, page.Items, row)
			p.count = page.Count
			return p
		})
	})
}

func newTaskShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a task and what you can do with it",
		Example: "  troupe task show " + exampleTask,
	}
	return asking(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		t, err := c.Task(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if out.Form != cli.FormTable {
			return out.Document(t.Raw)
		}
		_, seen := seenInstance(cmd.Context(), c, out, t.WorkflowID, t.InstanceID)
		return showTask(out, t, seen)
	})
}

func showTask(out *cli.Output, t *client.Task, seen *labels) error {
	rows := [][]string{
		{"TASK", t.TaskID},
		{"TITLE", t.Title},
		{"DESCRIPTION", shownText(t.Description)},
		{"INSTANCE", t.WorkflowID + " " + t.InstanceID},
		{"STATE", statesText([]api.Position{{StateMachineID: t.StateMachineID, NodeID: t.NodeID}}, seen.nodeIn)},
		{"STATUS", t.Status},
		{"ASSIGNEE", shownText(t.Assignee)},
		{"FOR", candidatesText(&t.Task)},
		{"REQUESTER", shownText(t.RequesterName)},
		{"CREATED", t.Created},
		{"DUE", shownText(t.Due)},
		{"PRIORITY", strconv.Itoa(t.Priority)},
		{"EVENTS", eventTexts(t.Events)},
	}
	if t.Done != nil {
		rows = append(rows, []string{"DONE", t.Done.UserName + ": " + seen.event(t.Done.Event) + ", " + t.Done.TS})
	}
	kept := rows[:0]
	for _, row := range rows {
		if row[1] != "" {
			kept = append(kept, row)
		}
	}
	return out.Table(kept)
}

func candidatesText(t *api.Task) string {
	if t.Done != nil {
		return ""
	}
	return cmp.Or(namesText(t.Candidates.Roles, t.Candidates.Users, t.Candidates.Privileges), "everyone who can read it")
}

func eventTexts(events []api.TaskEvent) string {
	texts := make([]string, len(events))
	for i, e := range events {
		if texts[i] = e.Name; e.Label != "" && e.Label != e.Name {
			texts[i] = e.Label + " (" + e.Name + ")"
		}
	}
	return strings.Join(texts, ", ")
}

func newTaskChange(action, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use: action + " ID...", Short: short,
		Example: "  troupe task " + action + " " + exampleTask,
	}
	return asking(cmd, nil, func(cmd *cobra.Command, c *client.Client, _ *cli.Output, args []string) error {
		return each(args, func(id string) error {
			_, err := c.ChangeTask(cmd.Context(), id, action, "")
			return err
		})
	})
}

func newTaskAssign() *cobra.Command {
	cmd := &cobra.Command{
		Use: "assign ID USER", Short: "Assign one of your tasks to another candidate",
		Long:    `Holders of mod-workflows can also assign other users' tasks.`,
		Example: "  troupe task assign " + exampleTask + " mary.major",
	}
	return asking(cmd, nil, func(cmd *cobra.Command, c *client.Client, _ *cli.Output, args []string) error {
		_, err := c.ChangeTask(cmd.Context(), args[0], client.AssignTask, args[1])
		return err
	})
}

func newTaskDo() *cobra.Command {
	var eventData, comment string
	cmd := &cobra.Command{
		Use: "do ID EVENT", Short: "Advance a task by sending one of its events",
		Long: `The event is sent once. With --comment, the comment is written first.`,
		Example: "  troupe task do " + exampleTask + " approve\n" +
			"  troupe task do " + exampleTask + " reject --comment 'Too late this year.'",
	}
	cmd.Flags().StringVar(&eventData, "data", "", "event.data: a JSON object, @file, or - for standard input")
	cmd.Flags().StringVar(&comment, "comment", "", "a comment on the instance")
	return asking(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		body, err := cli.JsonInput(cmd, "data", eventData)
		if err != nil {
			return err
		}
		t, err := c.Task(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if err := offers(t, args[1]); err != nil {
			return err
		}
		if comment != "" {
			if _, err := c.Comment(cmd.Context(), t.WorkflowID, t.InstanceID, comment); err != nil {
				return err
			}
		}
		i, err := c.Send(cmd.Context(), client.SendRequest{WorkflowID: t.WorkflowID, InstanceID: t.InstanceID, Event: args[1], Data: body, Minimal: out.Form == cli.FormTable})
		if err != nil {
			return err
		}
		return showChanged(cmd.Context(), c, out, i)
	})
}

func offers(t *client.Task, event string) error {
	if t.Done != nil {
		return errors.New("task " + t.TaskID + " was done by " + t.Done.UserName + " at " + t.Done.TS)
	}
	var names []string
	for _, e := range t.Events {
		names = append(names, e.Name)
	}
	if slices.Contains(names, event) {
		return nil
	}
	if t.Status == "claimed" && len(t.Events) == 0 {
		return errors.New(client.Printable(shownText(t.AssigneeName)) + " has task " + t.TaskID)
	}
	return errors.New("task " + t.TaskID + " does not accept " + strconv.Quote(event) + " from you; it accepts: " + strings.Join(names, " "))
}
