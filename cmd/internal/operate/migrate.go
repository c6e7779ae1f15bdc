package operate

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/connect"
	"troupe/gateway/api"
	"troupe/gateway/client"
	"troupe/statemachine/document"
)

func newInstanceMigrate() *cobra.Command {
	var file, filter string
	dryRun, limit := false, 0
	cmd := &cobra.Command{
		Use:   "migrate WORKFLOW",
		Short: "Give running instances another version of their workflow (needs mod-workflows)",
		Long: "Give running instances another version of their workflow. The plan says from which\n" +
			"version to which, and which nodes have other names there (statemachine/DEFINITION.md,\n" +
			"\"Migration\"). Each instance is one commit with one entry in its history. An instance\n" +
			"that has no place in the new version is refused and stays as it is; then exit 1. What\n" +
			"was interrupted is done by the same command again. A plan with assign is for owners of\n" +
			"the workflow and holders of mod-admin.",
		Example: "  troupe instance migrate invoice-approval --plan plan.yaml --dry-run\n" +
			"  troupe instance migrate invoice-approval --plan plan.yaml --filter '{\"states.nodeId\": \"review\"}'",
	}
	cmd.Flags().StringVar(&file, "plan", "", "file with the plan, in YAML or JSON")
	cmd.Flags().StringVar(&filter, "filter", "", "only instances that match, a JSON object")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing, and say what would be done")
	cmd.Flags().IntVar(&limit, "limit", 1000, "instances of one request, 1 to 1000")
	return operating(cmd, []string{cli.FormTable, cli.FormJSON}, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		request := &api.MigrationRequest{DryRun: dryRun, Limit: limit}
		switch {
		case file == "":
			return cli.Usagef("--plan is missing: a file that says from which version to which")
		case limit < 1 || limit > 1000:
			return cli.Usagef("--limit must be 1 to 1000")
		case filter != "" && !json.Valid([]byte(filter)):
			return cli.Usagef("--filter is not JSON")
		case filter != "":
			request.Filter = json.RawMessage(filter)
		}
		text, err := os.ReadFile(file)
		if err == nil {
			request.Plan, err = json.Marshal(string(text))
		}
		if err != nil {
			return err
		}
		total, err := migrateAll(cmd, c, args[0], file, request)
		if err != nil {
			return err
		}
		return showMigrated(out, total, dryRun)
	})
}

func migrateAll(cmd *cobra.Command, c *client.Client, workflow, file string, request *api.MigrationRequest) (api.MigrationAnswer, error) {
	total := api.MigrationAnswer{Refused: []api.MigrationRefusal{}}
	for {
		page, err := c.Migrate(cmd.Context(), workflow, request)
		if refused := (*client.Error)(nil); errors.As(err, &refused) && len(refused.Faults) > 0 {
			return total, planFaults(file, refused.Faults)
		}
		if err != nil {
			if total.Migrated > 0 && !request.DryRun {
				err = fmt.Errorf("%w (%s migrated before; the same command goes on)", err, cli.Plural(total.Migrated, "instance"))
			}
			return total, err
		}
		total.Matched += page.Matched
		total.Migrated += page.Migrated
		total.Refused = append(total.Refused, page.Refused...)
		if page.Next == nil {
			return total, nil
		}
		request.Cursor = *page.Next
	}
}

func planFaults(file string, wire []api.FileFault) error {
	faults := document.Faults{}
	for _, f := range connect.FaultsOf(wire) {
		f.File = file
		faults = append(faults, f)
	}
	return faults
}

func showMigrated(out *cli.Output, total api.MigrationAnswer, dryRun bool) error {
	if out.Form == cli.FormJSON {
		if err := out.Marshaled(json.Marshal(total)); err != nil {
			return err
		}
	} else {
		word := "migrated"
		if dryRun {
			word = "would be migrated"
		}
		rows := [][]string{{"MATCHED", fmt.Sprint(total.Matched)}, {strings.ToUpper(word), fmt.Sprint(total.Migrated)}, {"REFUSED", fmt.Sprint(len(total.Refused))}}
		for _, r := range total.Refused {
			rows = append(rows, []string{r.InstanceID, r.Reason})
		}
		if err := out.Table(rows); err != nil {
			return err
		}
	}
	if n := len(total.Refused); n > 0 {
		return fmt.Errorf("%s refused", cli.Plural(n, "instance"))
	}
	return nil
}
