// Package cluster has the commands that make several nodes one service and manage it. What a node does while it
// runs is in actors/cluster and in serve.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"troupe/actors/catalog"
	"troupe/actors/cluster"
	"troupe/actors/cluster/peer"
	"troupe/actors/formportal"
	"troupe/actors/hold"
	"troupe/actors/home"
	"troupe/cmd/internal/build"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/connect"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/admin"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

// Command is troupe cluster. The example fills an empty home that becomes a node.
func Command(example fs.FS) *cobra.Command {
	return cli.Group("cluster", "Create and manage a cluster", "  troupe cluster status --home ./troupe-home",
		newClusterInit(example), newClusterInvite(), newClusterJoin(), newClusterPrepare(example), newClusterStatus(), newClusterRemove(), newClusterRecover())
}

func clusterFlags(cmd *cobra.Command, c *config.Config) {
	cmd.Flags().SetNormalizeFunc(config.Dotted)
	for _, name := range []string{"home", "cluster.listen", "cluster.advertise", "cluster.name"} {
		cmd.Flags().AddFlag(c.Flags.Lookup(name))
	}
}

func offline(c *config.Config, do func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := c.LoadQuiet(); err != nil {
			return err
		}
		if err := homedir.AloneAt(cmd.Context(), c.Home); err != nil {
			return err
		}
		return do(cmd.Context(), cmd, args)
	}
}

func newClusterInit(example fs.FS) *cobra.Command {
	c := config.New()
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make a home the first node of a new cluster",
		Long: `Stop its server first. A missing or empty folder is filled with the example; an existing store keeps its data.
From then on, changed text files take effect only through 'troupe publish'. A cluster cannot become a single server
again, but it can have one node.`,
		Example: "  troupe cluster init --home ./a --cluster-listen 127.0.0.1:9401\n" +
			"  troupe serve --home ./a --listen :8091",
	}
	clusterFlags(cmd, c)
	cmd.Flags().AddFlag(c.Flags.Lookup("shards"))
	cmd.RunE = offline(c, func(_ context.Context, cmd *cobra.Command, _ []string) error {
		return first(cmd, c, example)
	})
	return cmd
}

func first(cmd *cobra.Command, c *config.Config, example fs.FS) error {
	advertise, err := c.Advertised()
	if err != nil {
		return cli.Usage(err)
	}
	if c.IsNode() && !homedir.Exists(filepath.Join(c.Home, homedir.StoreIDFile)) { // it has joined, and did not run yet
		return errNodeAlready(c.Home)
	}
	if err := c.FitsFile(); err != nil {
		return err
	}
	id, err := Init(c, advertise, example)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	_, err = fmt.Fprintf(out, "node %s is the first of a new cluster; next:\n  troupe serve --home %s\n  troupe cluster invite --home %s\n", id, c.Home, c.Home)
	return err
}

func errNodeAlready(home string) error { return fmt.Errorf("%s is already a node of a cluster", home) }

// newShards is how many shards a new cluster has. A shard is led by one node, so there are more of them than a cluster
// soon has nodes; a shard in which nothing happens costs next to nothing.
const newShards = 64

// Init makes the home's store that of the first node.
func Init(c *config.Config, advertise string, example fs.FS) (id peer.NodeID, err error) {
	if _, err := homedir.Ensure(c.Home, example); err != nil {
		return "", err
	}
	log := c.Logger()
	options := c.StoreOptions(log)
	if _, err := os.Stat(homedir.Data(c.Home)); errors.Is(err, fs.ErrNotExist) {
		options.Shards = cmp.Or(options.Shards, newShards)
	}
	store, err := persistence.Open(homedir.Data(c.Home), options)
	if errors.Is(err, persistence.ErrReplicated) {
		return "", errNodeAlready(c.Home)
	}
	if err != nil {
		return "", c.WithAdvice(err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	held, err := hold.Open(store, zerolog.Nop())
	if err == nil {
		err = held.Ready()
	}
	if err != nil {
		return "", fmt.Errorf("%w; a cluster holds nothing back, so serve it as one server first, and resume them", err)
	}
	if err := publishFirst(store, c.Home, log); err != nil {
		if faults := (document.Faults{}); errors.As(err, &faults) {
			return "", fmt.Errorf("%s has problems; nothing was changed:\n%w", c.Home, err)
		}
		return "", err
	}
	if err := c.KeepInFile(advertise); err != nil {
		return "", err
	}
	return cluster.Found(store, homedir.NodeFolder(c.Home), advertise)
}

func newClusterJoin() *cobra.Command {
	c := config.New()
	cmd := &cobra.Command{
		Use:   "join KEY",
		Short: "Make an empty folder the home of another node of a cluster",
		Long: `KEY is the output of 'troupe cluster invite' on a running node. Then start the server: the node gets its shards
automatically, and a vote in them once it has caught up.`,
		Example: "  troupe cluster join KEY --home ./b --cluster-listen 127.0.0.1:9402\n" +
			"  troupe serve --home ./b --listen :8092",
	}
	clusterFlags(cmd, c)
	cmd.RunE = offline(c, func(ctx context.Context, cmd *cobra.Command, args []string) error {
		return join(ctx, cmd, c, args[0])
	})
	return cmd
}

func join(ctx context.Context, cmd *cobra.Command, c *config.Config, text string) error {
	advertise, err := c.Advertised()
	if err != nil {
		return cli.Usage(err)
	}
	entries, err := os.ReadDir(c.Home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if homedir.HoldsFiles(entries) {
		return fmt.Errorf("%s is not empty: a new node gets everything from the cluster; give --home an empty or missing folder", c.Home)
	}
	key, err := peer.ParseJoinKey(text)
	if err != nil {
		return err
	}
	// NB: what can fail here fails before the cluster hears of this machine.
	if err := homedir.CanFill(c.Home); err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.Cluster.Listen)
	if err != nil {
		return config.ExplainAddress(err, "cluster.listen")
	}
	ctx, cancel := context.WithTimeout(ctx, cli.CommandTimeMax)
	defer cancel()
	joined, err := cluster.Join(ctx, cluster.Joining{Key: key, Advertise: advertise, Version: build.This().Version, Listener: l})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Home, 0o755); err != nil {
		return err
	}
	if err := c.KeepInFile(advertise); err != nil {
		return err
	}
	if err := joined.Save(homedir.NodeFolder(c.Home)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "node %s belongs to the cluster; next:\n  troupe serve --home %s --listen :8080\n", joined.Node(), c.Home)
	return err
}

func newClusterRecover() *cobra.Command {
	c := config.New()
	accepted := false
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Make one node a new cluster after most nodes are lost for good",
		Long: `The new cluster has the data of this node. What was acknowledged just before the loss and did not reach this node is
lost. If several nodes are left, choose the one that ran last. The others are excluded: remove their folders and
have them join again.`,
		Example: "  troupe cluster recover --home ./a --i-accept-loss",
	}
	clusterFlags(cmd, c)
	cmd.Flags().BoolVar(&accepted, "i-accept-loss", false, "accept losing what only the lost nodes have")
	cmd.RunE = offline(c, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		dir := homedir.NodeFolder(c.Home)
		if !cluster.Exists(dir) {
			return fmt.Errorf("%s is not a node of a cluster", c.Home)
		}
		if !accepted {
			return fmt.Errorf("nothing was changed. This would lose what was acknowledged last and did not reach this node, and exclude the other nodes. "+
				"If most nodes are lost for good: troupe cluster recover --home %s --i-accept-loss", c.Home)
		}
		advertise, err := c.Advertised()
		if err != nil {
			return cli.Usage(err)
		}
		if err := refuseWhole(ctx, c); err != nil {
			return err
		}
		found, err := cluster.NewAgain(advertise)
		if err != nil {
			return err
		}
		missing, err := persistence.Recover(homedir.Data(c.Home), c.StoreOptions(c.Logger()), string(found.Node()))
		if err != nil {
			return c.WithAdvice(err)
		}
		if err := found.Save(dir); err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		for _, sh := range missing {
			_, _ = fmt.Fprintf(out, "this node had no copy of %s: its data is lost\n", shardName(sh))
		}
		_, err = fmt.Fprintf(out, "node %s is the only node of a new cluster; what did not reach it is lost; next:\n  troupe serve --home %s\n  troupe cluster invite --home %s\n", found.Node(), c.Home, c.Home)
		return err
	})
	return cmd
}

func shardName(sh key.Shard) string {
	if sh == key.Meta {
		return "the cluster's own shard (its members, credentials and definitions)"
	}
	return fmt.Sprintf("shard %d", sh)
}

// refuseWhole refuses to make a new cluster of a node whose own one has a majority: there would be two.
func refuseWhole(ctx context.Context, c *config.Config) error {
	node, err := c.LoadNode(c.Logger())
	if err != nil {
		return nil //nolint:nilerr // anyone who is no node any more can ask nobody
	}
	defer func() { _ = node.ClosePort(ctx) }()
	others, all := node.Answering(ctx)
	if all == 1 {
		return fmt.Errorf("nothing was changed: this is the only node, so nothing is lost; start it with `troupe serve --home %s`", c.Home)
	}
	if 2*(len(others)+1) > all {
		return fmt.Errorf("nothing was changed: %d of the cluster's %d nodes answer, which is a majority with this one; start it with `troupe serve --home %s`", len(others), all, c.Home)
	}
	return nil
}

const startMax = 15 * time.Second

func atNode(cmd *cobra.Command, starting time.Duration, do func(ctx context.Context, node *admin.Client, args []string) error) *cobra.Command {
	c := config.New()
	cmd.Flags().AddFlag(c.Flags.Lookup("home"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := c.Load(); err != nil {
			return err
		}
		node, err := dial(cmd.Context(), c, starting)
		if err != nil {
			return err
		}
		return do(cmd.Context(), node, args)
	}
	return cmd
}

// dial connects to the server of a home, which may need some time to start.
func dial(ctx context.Context, c *config.Config, starting time.Duration) (*admin.Client, error) {
	for end := time.Now().Add(starting); c.IsNode() && time.Now().Before(end) && !homedir.IsServed(ctx, c.Home); {
		select {
		case <-time.After(removeEvery / 5):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return connect.Dial(ctx, c.Home)
}

func newClusterInvite() *cobra.Command {
	expires := time.Hour
	cmd := &cobra.Command{
		Use:     "invite",
		Short:   "Print a key that lets one more node join the cluster",
		Long:    `Keep the key secret: anyone who has it can become a node, once, until it expires.`,
		Example: "  troupe cluster invite --home ./a\n  troupe cluster invite --home ./a --expires 10m",
	}
	cmd.Flags().Var(cli.Checked(cli.Duration(&expires), config.IsSessionTime), "expires", "lifetime, at least 1s")
	return atNode(cmd, startMax, func(ctx context.Context, node *admin.Client, _ []string) error {
		ctx, cancel := context.WithTimeout(ctx, cli.CommandTimeMax)
		defer cancel()
		key, err := node.Invite(ctx, expires)
		if err == nil {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), key)
		}
		return err
	})
}

const (
	removeEvery   = 500 * time.Millisecond
	progressEvery = 10 * time.Second
	// idleMax is how long a removal may move no shard while another node does not answer.
	idleMax = 2 * time.Minute
)

func newClusterRemove() *cobra.Command {
	lost := false
	cmd := &cobra.Command{
		Use:   "remove NODE",
		Short: "Remove a node from the cluster after moving its shards",
		Long: `NODE is its id in 'troupe cluster status'. A running node hands its shards to other nodes and then stops, even if
this command is interrupted.`,
		Example: "  troupe cluster remove 01K3Q4V7Z9W2M8N5P6R0S1T2A3 --home ./a\n" +
			"  troupe cluster remove 01K3Q4V7Z9W2M8N5P6R0S1T2A3 --home ./a --lost",
	}
	cmd.Flags().BoolVar(&lost, "lost", false, "the node is not running and will not come back")
	return atNode(cmd, 0, func(ctx context.Context, node *admin.Client, args []string) error {
		id := strings.ToUpper(args[0]) // as the cluster has it
		begin, cancel := context.WithTimeout(ctx, cli.CommandTimeMax)
		defer cancel()
		before, err := clusterStatus(begin, node)
		if err != nil {
			return err
		}
		if err := node.RemoveNode(begin, id, lost); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "node %s is leaving; its shards are moving to other nodes\n", id)
		if err := awaitRemoved(ctx, node, id, string(before.Self) == id, cmd.ErrOrStderr()); err != nil {
			return err
		}
		if len(before.Nodes) == 3 {
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "two nodes are left: while either is down, the cluster does nothing")
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "node %s was removed\n", id)
		return err
	})
}

// A node that is asked about itself ends instead; that another one does not answer tells nothing.
func awaitRemoved(ctx context.Context, asked statusTeller, id string, itself bool, progress io.Writer) error {
	held, moved := -1, time.Now()
	for said := moved; ; {
		status, err := clusterStatus(ctx, asked)
		at := slices.IndexFunc(status.Nodes, func(n cluster.NodeStatus) bool { return string(n.ID) == id })
		switch {
		case itself && errors.Is(err, admin.ErrNoServer):
			return nil
		case err != nil:
			return fmt.Errorf("node %s is leaving; this command cannot see whether it has left: %w", id, err)
		case len(status.Nodes) > 0 && at < 0:
			return nil // NB: a node that has only just started lists none
		case at >= 0 && status.Nodes[at].Held != held:
			held, moved = status.Nodes[at].Held, time.Now()
		}
		if at >= 0 && time.Since(said) >= progressEvery {
			said = time.Now()
			still, dead := fmt.Sprintf("node %s still has %s", id, cli.Plural(held, "shard")), ""
			if n := slices.IndexFunc(status.Nodes, func(n cluster.NodeStatus) bool { return !n.Alive && string(n.ID) != id }); n >= 0 {
				dead = string(status.Nodes[n].ID)
				still += fmt.Sprintf(", and node %s does not answer: start it, or run `troupe cluster remove %[1]s --lost`", dead)
			}
			if dead != "" && time.Since(moved) >= idleMax {
				return fmt.Errorf("%s; the removal goes on, and `troupe cluster status` shows it", still)
			}
			_, _ = fmt.Fprintln(progress, still)
		}
		select {
		case <-time.After(removeEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// publishFirst makes the text files of a home what its cluster begins with. The error is document.Faults when the files
// have some, and then nothing is changed.
func publishFirst(store *persistence.Store, dir string, log zerolog.Logger) error {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		return err
	}
	definitions, err := catalog.Open(catalog.Options{Store: store, Parser: parser, Log: log})
	if err != nil {
		return err
	}
	templates, err := formportal.OpenTemplates(store, log)
	if err != nil {
		return err
	}
	set, err := home.Load(os.DirFS(dir), parser)
	if err != nil {
		return err
	}
	return home.PublishFirst(home.PublishedOptions{Store: store, Catalog: definitions, Templates: templates}, set, "cluster init")
}
