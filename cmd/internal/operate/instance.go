// Package operate has the commands that work with what runs: instances, tasks, what was sent out, incidents, timers,
// schedules, definitions that nothing uses, and a store that is gone. All but the last ask a service.
package operate

import (
	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
)

func newInstance() *cobra.Command {
	return cli.Group("instance", "List, show, create, move and watch instances of a running service",
		"  troupe instance create leave-request --public '{\"from\": \"2026-12-21\"}'\n"+
			"  troupe instance list leave-request --filter '{\"states.nodeId\": \"review\"}'",
		newInstanceList(), newInstanceShow(), newInstanceCreate(), newInstanceSend(),
		newInstanceHistory(), newInstanceActivity(), newInstanceComment(), newInstancePending(), newInstanceWatch(), newInstanceEvents(), newInstanceMigrate(), newInstanceStop())
}

// Commands are those that work with what runs.
func Commands() []*cobra.Command {
	return []*cobra.Command{newInstance(), newTask(), newOutbox(), newIncident(), newTimer(), newSchedule(), newDefinition(), newStore()}
}
