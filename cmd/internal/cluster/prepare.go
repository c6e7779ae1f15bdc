package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
)

func newClusterPrepare(example fs.FS) *cobra.Command {
	c := config.New()
	var initiator, keyFile, invitedBy, from string
	cmd := &cobra.Command{
		Use:   "prepare",
		Short: "Make a home that of a node, unless it is one: before each start of a container",
		Long: `A home that is a node's already stays as it is. Any other becomes one: with a key of 'troupe cluster invite' in
--key-file, or one that the server of --invited-by gives, it joins the cluster. Without a key, and only on the node that
--first names, it is the first one of a new cluster. Take --first away once the cluster exists: a node that has lost its
disk must join again, and not begin another cluster.`,
		Example: "  troupe cluster prepare --home ./a --cluster-listen 127.0.0.1:9401 --cluster-name a --first a\n" +
			"  troupe cluster prepare --home ./b --cluster-listen 127.0.0.1:9402 --cluster-name b --invited-by ./a\n" +
			"  troupe cluster prepare --home ./c --cluster-listen 127.0.0.1:9403 --cluster-name c --key-file ./key-of-c",
	}
	clusterFlags(cmd, c)
	cmd.Flags().StringVar(&initiator, "first", "", "cluster.name of the node that begins a new cluster")
	cmd.Flags().StringVar(&keyFile, "key-file", "", "file with the key; it may be missing")
	cmd.Flags().StringVar(&invitedBy, "invited-by", "", "home of another node whose server runs on this machine")
	cmd.Flags().StringVar(&from, "from", "", "folder with the text files of the first node, in place of the example")
	prepare := offline(c, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		if keyFile != "" && invitedBy != "" {
			return cli.Usagef("--key-file and --invited-by cannot be combined")
		}
		key, err := keyFrom(ctx, keyFile, invitedBy)
		switch {
		case err != nil:
			return err
		case key != "":
			return join(ctx, cmd, c, key)
		case initiator == "" || initiator != c.Cluster.Name:
			return fmt.Errorf("%s is not a node yet, and there is no key for it: run `troupe cluster invite` on a running node, and write what it prints into the file of --key-file", c.Home)
		}
		if from != "" {
			example = os.DirFS(from)
		}
		return first(cmd, c, example)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := c.LoadQuiet(); err != nil {
			return err
		}
		if !c.IsNode() {
			return prepare(cmd, args)
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is a node of a cluster\n", c.Home)
		return err
	}
	return cmd
}

// keyFrom reads the key from the file, or asks the server of the home for one; it is empty when there is none.
func keyFrom(ctx context.Context, file, home string) (string, error) {
	if home != "" {
		inviting := config.New()
		inviting.Home = home
		node, err := dial(ctx, inviting, startMax)
		if err != nil {
			return "", fmt.Errorf("--invited-by: %w", err)
		}
		ctx, cancel := context.WithTimeout(ctx, cli.CommandTimeMax)
		defer cancel()
		return node.Invite(ctx, cli.CommandTimeMax)
	}
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("--key-file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
