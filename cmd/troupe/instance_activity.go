package main

import (
	"strings"

	"github.com/spf13/cobra"

	"troupe/gateway/api"
	"troupe/gateway/client"
)

func newInstanceComment() *cobra.Command {
	cmd := &cobra.Command{
		Use: "comment WORKFLOW INSTANCE TEXT", Short: "Comment on an instance", Args: arguments,
		Example: "  troupe instance comment leave-request 01M7YZAB2GNTJFQE62690KHSQT 'Please ask again in March.'",
	}
	return asking(cmd, nil, func(cmd *cobra.Command, c *client.Client, _ *output, args []string) error {
		_, err := c.Comment(cmd.Context(), args[0], args[1], args[2])
		return err
	})
}

func newInstanceActivity() *cobra.Command {
	r := client.ActivityRequest{}
	var p paging
	cmd := &cobra.Command{
		Use:   "activity WORKFLOW INSTANCE",
		Short: "Show what has happened to an instance: its history, comments, claims, and what waits",
		Example: "  troupe instance activity leave-request 01M7YZAB2GNTJFQE62690KHSQT\n" +
			"  troupe instance activity leave-request 01M7YZAB2GNTJFQE62690KHSQT --oldest-first --all -o jsonl",
		Args: arguments,
	}
	cmd.Flags().BoolVar(&r.OldestFirst, "oldest-first", false, "the oldest first")
	p.add(cmd)
	return asking(cmd, anyForm, func(cmd *cobra.Command, c *client.Client, out *output, args []string) error {
		r.WorkflowID, r.InstanceID, r.Limit, r.Cursor = args[0], args[1], p.limit, p.cursor
		l := &lister{cmd: cmd, out: out, member: "activity", head: []string{"TIME", "USER", "WHAT", "TEXT"}}
		if p.all {
			return writePages(l, c.ActivityPages(cmd.Context(), r), activityPage)
		}
		page, err := c.Activity(cmd.Context(), r)
		if err != nil {
			return err
		}
		return l.one(activityPage(page))
	})
}

func activityPage(page *client.ActivityPage) *listPage {
	p := &listPage{raw: page.Raw, next: page.Next}
	for i := range page.Activity {
		a := &page.Activity[i]
		what, text := activityText(a)
		p.rows = append(p.rows, []string{a.TS, shownText(a.UserName), what, text})
		p.items = append(p.items, itemOf(a))
	}
	return p
}

// activityText says what happened, and more about it.
func activityText(a *api.Activity) (what, text string) {
	switch a.Kind {
	case "comment":
		return "comment", a.Text
	case "task":
		return a.Action + " " + a.NodeID, shownText(a.ToName)
	case "timer":
		return "timer", a.Timer.Event
	case "delivery":
		return a.Delivery.Kind, a.Delivery.Name + " " + a.Delivery.State
	}
	if a.Attempt {
		return "attempt", shownText(a.TransitionEvent) + " (nothing changed)"
	}
	return "event", strings.TrimSpace(shownText(a.TransitionEvent) + " (" + strings.Join(a.StartState, ", ") + " → " + strings.Join(a.EndState, ", ") + ")")
}
