package operate

import (
	"strings"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/gateway/api"
	"troupe/gateway/client"
)

func newInstanceComment() *cobra.Command {
	cmd := &cobra.Command{
		Use: "comment WORKFLOW INSTANCE TEXT", Short: "Comment on an instance",
		Example: "  troupe instance comment leave-request 01M7YZAB2GNTJFQE62690KHSQT 'Please ask again in March.'",
	}
	return asking(cmd, nil, func(cmd *cobra.Command, c *client.Client, _ *cli.Output, args []string) error {
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
	}
	cmd.Flags().BoolVar(&r.OldestFirst, "oldest-first", false, "the oldest first")
	p.add(cmd)
	return asking(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		r.WorkflowID, r.InstanceID, r.Limit, r.Cursor = args[0], args[1], p.limit, p.cursor
		l := &lister{cmd: cmd, out: out, member: "activity", head: []string{"TIME", "USER", "WHAT", "TEXT"}}
		_, seen := seenInstance(cmd.Context(), c, out, r.WorkflowID, r.InstanceID)
		return list(l, p.all, r, c.Activity, c.ActivityPages, func(page *client.ActivityPage) *listPage {
			return pageOf(page.Raw, page.Next, page.Activity, func(a *api.Activity) []string {
				what, text := activityText(a, seen)
				return []string{a.TS, shownText(a.UserName), what, text}
			})
		})
	})
}

func activityText(a *api.Activity, seen *labels) (what, text string) {
	switch a.Kind {
	case "comment":
		return "comment", a.Text
	case "task":
		return a.Action + " " + seen.nodeText([]string{a.NodeID}), shownText(a.ToName)
	case "timer":
		return "timer", seen.timerText(a.Timer)
	case "delivery":
		return a.Delivery.Kind, a.Delivery.Name + " " + a.Delivery.State
	}
	event := shownText(a.TransitionEvent)
	if event != "" {
		event = seen.event(event)
	}
	if a.Attempt {
		return "attempt", event + " (nothing changed)"
	}
	return "event", strings.TrimSpace(event + " (" + seen.nodeText(a.StartState) + " → " + seen.nodeText(a.EndState) + ")")
}
