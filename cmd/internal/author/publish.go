package author

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"troupe/actors/home"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/connect"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/api"
	"troupe/gateway/client"
	"troupe/statemachine/document"
)

func newPublish() *cobra.Command {
	c := config.New()
	dryRun := false
	cmd := &cobra.Command{
		Use:   "publish [DIR]",
		Short: "Make the text files of a home what is in use in the cluster",
		Long: "Make the text files of a home what is in use in the cluster: its identity.yaml, its\n" +
			"rights.yaml, and the workflows, forms and checklists with what they refer to. All\n" +
			"are checked together and taken together; all faults are printed, and then nothing is\n" +
			"changed (exit 1). Within a second every node uses them. DIR is --home without it.\n\n" +
			"It is for clusters: a server that is not a node of one takes over the files of its\n" +
			"home by itself when they change, and `troupe check` says whether it will.\n\n" +
			"The node that runs on --home is asked, or the service of --address or --context with\n" +
			"the token of a holder of mod-admin.",
		Example: "  troupe publish --home /srv/troupe\n" +
			"  troupe publish --dry-run --context production ./home-in-git",
	}
	cmd.Flags().AddFlag(c.Flags.Lookup("home"))
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only check the files, here and by the server")
	connection := connect.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dir := c.Home
		if len(args) > 0 {
			dir = args[0]
		}
		archive, warnings, err := packHome(dir)
		var published api.PublishedHome
		if err == nil {
			published, err = publishArchive(cmd.Context(), c, connection, archive, dryRun)
			warnings = merge(warnings, connect.FaultsOf(published.Warnings))
		}
		if dryRun && isNotANode(err) {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "no faults in the files; "+api.NotANode)
			return err
		}
		return showPublished(cmd, dir, published, warnings, dryRun, err)
	}
	return cmd
}

func packHome(dir string) (archive []byte, warnings document.Faults, err error) {
	if !homedir.HasText(dir) {
		return nil, nil, fmt.Errorf("there are no text files to publish in %s: it has no %s; name the folder that has them, troupe publish DIR", dir, home.IdentityFile)
	}
	set, err := homedir.Load(dir)
	if err != nil {
		return nil, set.Warnings, err
	}
	archive, err = set.Pack()
	return archive, set.Warnings, err
}

// publishArchive asks the service that the flags name, else the node on the home.
func publishArchive(ctx context.Context, c *config.Config, to *connect.Connection, archive []byte, dryRun bool) (api.PublishedHome, error) {
	if to.Address != "" || to.Context != "" || to.TokenFile != "" {
		service, err := to.Client(0)
		if err != nil {
			return api.PublishedHome{}, err
		}
		defer service.Close()
		published, err := service.PublishHome(ctx, archive, dryRun)
		if refused := (*client.Error)(nil); errors.As(err, &refused) && len(refused.Faults) > 0 {
			return published, connect.FaultsOf(refused.Faults)
		}
		return published, connect.Explain(err)
	}
	node, err := connect.Dial(ctx, c.Home)
	if err != nil {
		return api.PublishedHome{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, to.Timeout)
	defer cancel()
	return node.Publish(ctx, archive, dryRun)
}

func isNotANode(err error) bool {
	return err != nil && strings.Contains(err.Error(), api.NotANode)
}

func showPublished(cmd *cobra.Command, dir string, published api.PublishedHome, warnings document.Faults, dryRun bool, err error) error {
	out := cmd.OutOrStdout()
	for _, w := range warnings {
		_, _ = fmt.Fprintln(out, "warning: "+w.Error())
	}
	if faults := (document.Faults{}); errors.As(err, &faults) {
		for _, f := range faults {
			_, _ = fmt.Fprintln(out, f.Error())
		}
		return fmt.Errorf("%s in %s; nothing was published", cli.Plural(len(faults), "fault"), dir)
	}
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s, %s and %s", cli.Plural(published.Workflows, "workflow"), cli.Plural(published.Templates, "template"), cli.Plural(published.Users, "user"))
	if dryRun {
		_, err = fmt.Fprintln(out, "no faults: "+what+" would be in use")
	} else {
		_, err = fmt.Fprintln(out, "in use now: "+what)
	}
	return err
}
