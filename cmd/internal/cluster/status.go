package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"troupe/actors/cluster"
	"troupe/cmd/internal/cli"
	"troupe/gateway/admin"
	"troupe/persistence/key"
)

func newClusterStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the nodes of the cluster, as seen by the node on this home",
		Long:  `Under-replicated shards are named on standard error, and the exit code is then 1.`,
		Example: "  troupe cluster status --home ./a\n" +
			"  troupe cluster status --home ./a -o json",
	}
	o := cli.AddOutput(cmd, cli.FormTable, cli.FormJSON)
	return atNode(cmd, 0, func(ctx context.Context, node *admin.Client, _ []string) error {
		ctx, cancel := context.WithTimeout(ctx, cli.CommandTimeMax)
		defer cancel()
		status, err := clusterStatus(ctx, node)
		if err != nil {
			return err
		}
		if o.Form == cli.FormJSON {
			text, err := json.Marshal(status.Contract())
			if err != nil {
				return err
			}
			return cmp.Or(o.Raw(append(text, '\n')), errShort(status.Short))
		}
		return cmp.Or(o.Table(clusterTable(status)), errShort(status.Short))
	})
}

func errShort(short []key.Shard) error {
	if len(short) == 0 {
		return nil
	}
	var names []string
	for first := 0; first < len(short); {
		last := first
		for last+1 < len(short) && short[last+1] == short[last]+1 && short[last+1] != key.Meta {
			last++
		}
		name := strconv.Itoa(int(short[first]))
		switch {
		case short[first] == key.Meta:
			name = "the cluster's own"
		case last > first:
			name += "-" + strconv.Itoa(int(short[last]))
		}
		names, first = append(names, name), last+1
	}
	return fmt.Errorf("%s: %s", cli.Plural(len(short), "under-replicated shard"), strings.Join(names, ", "))
}

func clusterTable(status cluster.Status) [][]string {
	rows := [][]string{{"NAME", "NODE", "ADDRESS", "ALIVE", "VOTER", "VERSION", "LED", "HELD", "LAG", "NOTE"}}
	word := map[bool]string{true: "yes", false: "no"}
	led := 0
	for _, n := range status.Nodes {
		led += n.Led
	}
	for _, n := range status.Nodes {
		var notes []string
		if n.ID == status.Self {
			notes = append(notes, "this node")
			if led == 0 {
				notes = append(notes, "no leader")
			}
		}
		if !n.Alive {
			notes = append(notes, "does not answer")
		}
		if n.Leaving {
			notes = append(notes, "leaving")
		}
		if n.Full {
			notes = append(notes, "disk is full")
		}
		if n.SettingsDiffer {
			note := "different settings"
			if len(n.DifferingSettings) > 0 {
				note += ": " + strings.Join(n.DifferingSettings, " ")
			}
			notes = append(notes, note)
		}
		rows = append(rows, []string{
			cmp.Or(n.Name, n.Address), string(n.ID), n.Address, word[n.Alive], word[n.Voter], n.Version,
			strconv.Itoa(n.Led), strconv.Itoa(n.Held), strconv.FormatUint(n.Lag, 10), strings.Join(notes, ", "),
		})
	}
	return rows
}

type statusTeller interface {
	ClusterStatus(ctx context.Context) ([]byte, error)
}

func clusterStatus(ctx context.Context, asked statusTeller) (status cluster.Status, err error) {
	text, err := asked.ClusterStatus(ctx)
	if err == nil {
		err = json.Unmarshal(text, &status)
	}
	return status, err
}
