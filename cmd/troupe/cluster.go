package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"troupe/actors/cluster"
	"troupe/actors/cluster/peer"
	"troupe/actors/form"
	"troupe/gateway/admin"
	"troupe/persistence"
	"troupe/statemachine/document"
)

func newCluster() *cobra.Command {
	return group("cluster", "Make several nodes one service, and look after it", "  troupe cluster status --home ./troupe-home",
		newClusterInit(), newClusterInvite(), newClusterJoin(), newClusterStatus(), newClusterRemove(), newClusterRecover())
}

// nodeFolder is where a home's node of a cluster keeps its identity.
func nodeFolder(home string) string {
	return filepath.Join(home, dataFolder, persistence.BesideFolder)
}

// clusterFlags adds the flags that say where a node listens. cluster-listen is cluster.listen.
func clusterFlags(cmd *cobra.Command, c *config) {
	cmd.Flags().SetNormalizeFunc(dotted)
	for _, name := range []string{"home", "cluster.listen", "cluster.advertise", "cluster.name"} {
		cmd.Flags().AddFlag(c.flags.Lookup(name))
	}
}

// dotted takes the settings of the cluster with a hyphen too.
func dotted(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if rest, ok := strings.CutPrefix(name, "cluster-"); ok {
		name = "cluster." + rest
	}
	return pflag.NormalizedName(name)
}

// offline runs a command on a home whose server does not run.
func offline(c *config, do func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := c.load(); err != nil {
			return err
		}
		c.logLevel = "warn" // this is a command, not the server
		if err := aloneAt(cmd.Context(), c.home); err != nil {
			return err
		}
		return do(cmd.Context(), cmd, args)
	}
}

// advertised is the address of the cluster port as others reach it.
func (c *config) advertised() (string, error) {
	if c.cluster.Listen == "" {
		return "", errors.New("--cluster-listen is missing: the address that other nodes reach this one at, such as 10.0.0.1:9400")
	}
	if c.cluster.Advertise != "" {
		if err := peer.CheckAddress(c.cluster.Advertise); err != nil {
			return "", fmt.Errorf("other nodes cannot reach this one by --cluster-advertise: %w", err)
		}
		return c.cluster.Advertise, nil
	}
	host, port, err := net.SplitHostPort(c.cluster.Listen)
	if ip := net.ParseIP(host); err != nil || host == "" || ip != nil && ip.IsUnspecified() || port == "0" {
		return "", fmt.Errorf("other nodes cannot reach %s: give --cluster-advertise as well, such as 10.0.0.1:9400", c.cluster.Listen)
	}
	return c.cluster.Listen, nil
}

func newClusterInit() *cobra.Command {
	c := newConfig()
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make a home the first node of a new cluster",
		Long: "Make a home the first node of a new cluster. Its server must not run. A missing or\n" +
			"empty folder is filled with the example first; the store of a single node keeps what\n" +
			"it has. From then on the text files of the home are what `troupe publish` makes them.\n" +
			"There is no way back but a cluster of one node.",
		Example: "  troupe cluster init --home ./a --cluster-listen 127.0.0.1:9401\n" +
			"  troupe serve --home ./a --listen :8081",
		Args: arguments,
	}
	clusterFlags(cmd, c)
	cmd.Flags().AddFlag(c.flags.Lookup("shards"))
	cmd.RunE = offline(c, func(_ context.Context, cmd *cobra.Command, _ []string) error {
		advertise, err := c.advertised()
		if err != nil {
			return usageError{err}
		}
		if c.isNode() && !exists(filepath.Join(c.home, storeIDFile)) { // it has joined, and did not run yet
			return errNodeAlready(c.home)
		}
		if err := c.fitsFile(); err != nil {
			return err
		}
		id, err := c.initCluster(advertise)
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		_, err = fmt.Fprintf(out, "node %s is the first of a new cluster; next:\n  troupe serve --home %s\n  troupe cluster invite --home %s\n", id, c.home, c.home)
		return err
	})
	return cmd
}

func errNodeAlready(home string) error {
	return fmt.Errorf("%s is a node of a cluster already", home)
}

// initCluster makes the home's store that of the first node.
func (c *config) initCluster(advertise string) (id peer.NodeID, err error) {
	if _, err := ensureHome(c.home); err != nil {
		return "", err
	}
	log := c.logger()
	store, err := persistence.Open(filepath.Join(c.home, dataFolder), storeOptions(c, log))
	if errors.Is(err, persistence.ErrReplicated) {
		return "", errNodeAlready(c.home)
	}
	if err != nil {
		return "", withAdvice(c, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := publishFirst(store, c.home, log); err != nil {
		if faults := (document.Faults{}); errors.As(err, &faults) {
			return "", fmt.Errorf("%s has faults; nothing was changed:\n%w", c.home, err)
		}
		return "", err
	}
	if _, err := form.OpenLists(store); err != nil { // in its present form before it gets replicas
		return "", err
	}
	if err := c.keepInFile(advertise); err != nil {
		return "", err
	}
	return cluster.Found(store, nodeFolder(c.home), advertise)
}

// fileOnly are the settings as the home's file alone has them.
func (c *config) fileOnly() (*config, error) {
	of := newConfig()
	of.home = c.home
	for _, s := range of.settings {
		of.sources[s.name] = "default"
	}
	return of, of.loadFile()
}

// fitsFile refuses flags of a node that its settings file contradicts: serve reads the file.
func (c *config) fitsFile() error {
	of, err := c.fileOnly()
	if err != nil {
		return err
	}
	for _, name := range []string{"cluster.listen", "cluster.advertise"} {
		now, kept := c.flags.Lookup(name).Value.String(), of.flags.Lookup(name).Value.String()
		if kept != "" && kept != now {
			return fmt.Errorf("%s has %s: %s, and not %s: change it there", settingsFile, name, kept, now)
		}
	}
	return nil
}

// keepInFile writes what a node needs to know at its start into the home's settings file, unless
// it is there.
func (c *config) keepInFile(advertise string) error {
	of, err := c.fileOnly()
	if err != nil || of.cluster.Listen != "" {
		return err
	}
	path := filepath.Join(c.home, settingsFile)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "cluster:") {
			return fmt.Errorf("%s has a group cluster without listen: add `listen: %s` to it", settingsFile, c.cluster.Listen)
		}
	}
	add := "cluster:\n  listen: " + strconv.Quote(c.cluster.Listen) + "\n"
	if advertise != c.cluster.Listen {
		add += "  advertise: " + strconv.Quote(advertise) + "\n"
	}
	if c.cluster.Name != "" && of.cluster.Name == "" {
		add += "  name: " + strconv.Quote(c.cluster.Name) + "\n"
	}
	if c.joinedShards != 0 {
		add += "shards: " + strconv.Itoa(c.joinedShards) + "\n"
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		add = "\n" + add
	}
	return appendDurably(path, add)
}

// appendDurably adds to a file, or leaves what was in it.
func appendDurably(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	had, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		err = errors.Join(err, f.Truncate(had))
	}
	return errors.Join(err, f.Close())
}

func newClusterJoin() *cobra.Command {
	c := newConfig()
	cmd := &cobra.Command{
		Use:   "join KEY",
		Short: "Make an empty folder the home of another node of a cluster",
		Long: "Make an empty or missing folder the home of another node of a cluster. KEY is what\n" +
			"`troupe cluster invite` printed on one that runs. Then start the server: the node gets\n" +
			"its shards by itself, and a vote in them when it has caught up.",
		Example: "  troupe cluster join KEY --home ./b --cluster-listen 127.0.0.1:9402\n" +
			"  troupe serve --home ./b --listen :8082",
		Args: arguments,
	}
	clusterFlags(cmd, c)
	cmd.RunE = offline(c, func(ctx context.Context, cmd *cobra.Command, args []string) error {
		advertise, err := c.advertised()
		if err != nil {
			return usageError{err}
		}
		entries, err := os.ReadDir(c.home)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if holdsFiles(entries) {
			return fmt.Errorf("%s is not empty: a node that joins gets everything from the cluster; give --home an empty or missing folder", c.home)
		}
		key, err := peer.ParseJoinKey(args[0])
		if err != nil {
			return err
		}
		// NB: what can fail here fails before the cluster hears of this machine.
		if err := canFill(c.home); err != nil {
			return err
		}
		l, err := net.Listen("tcp", c.cluster.Listen)
		if err != nil {
			return explainAddress(err, "cluster.listen")
		}
		ctx, cancel := context.WithTimeout(ctx, commandTimeMax)
		defer cancel()
		joined, err := cluster.Join(ctx, cluster.Joining{Key: key, Advertise: advertise, Version: buildOf(buildInfo()).Version, Listener: l})
		if err != nil {
			return err
		}
		if err := os.MkdirAll(c.home, 0o755); err != nil {
			return err
		}
		c.joinedShards = joined.Shards
		if err := c.keepInFile(advertise); err != nil {
			return err
		}
		if err := joined.Save(nodeFolder(c.home)); err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "node %s belongs to the cluster; next:\n  troupe serve --home %s --listen :8080\n", joined.Node(), c.home)
		return err
	})
	return cmd
}

// canFill refuses a folder in which no file can be made. It leaves it as it was.
func canFill(dir string) error {
	missing := dir // the first of the folders that have to be made
	for parent := filepath.Dir(dir); !exists(parent) && parent != filepath.Dir(parent); parent = filepath.Dir(parent) {
		missing = parent
	}
	if !exists(dir) {
		defer func() { _ = os.RemoveAll(missing) }()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, settingsFile+".*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func newClusterRecover() *cobra.Command {
	c := newConfig()
	accepted := false
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Make one node a new cluster, when most of the nodes are lost for good",
		Long: "Make one node a new cluster with what it has, when most of the nodes are lost for good.\n" +
			"What was acknowledged in the last moments and did not reach this node is lost. The other\n" +
			"nodes of the old cluster are shut out: remove their folders and have them join anew.\n" +
			"Where several nodes are left, take the one that ran last.",
		Example: "  troupe cluster recover --home ./a --i-accept-loss",
		Args:    arguments,
	}
	clusterFlags(cmd, c)
	cmd.Flags().BoolVar(&accepted, "i-accept-loss", false, "what only the lost nodes have is given up")
	cmd.RunE = offline(c, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		dir := nodeFolder(c.home)
		if !cluster.Exists(dir) {
			return fmt.Errorf("%s is no node of a cluster", c.home)
		}
		if !accepted {
			return fmt.Errorf("what was acknowledged in the last moments and did not reach this node would be lost, and so would the other nodes' part in the cluster; nothing was changed. "+
				"If most nodes are lost for good, say so: troupe cluster recover --home %s --i-accept-loss", c.home)
		}
		advertise, err := c.advertised()
		if err != nil {
			return usageError{err}
		}
		if err := c.refuseWhole(ctx); err != nil {
			return err
		}
		found, err := cluster.NewAgain(advertise)
		if err != nil {
			return err
		}
		missing, err := persistence.FoundAgain(filepath.Join(c.home, dataFolder), storeOptions(c, c.logger()), string(found.Node()))
		if err != nil {
			return withAdvice(c, err)
		}
		if err := found.Save(dir); err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		for _, sh := range missing {
			_, _ = fmt.Fprintf(out, "this node had no copy of %s: what was in it is lost\n", shardName(sh))
		}
		_, err = fmt.Fprintf(out, "node %s is the only one of a new cluster; what did not reach it is lost; next:\n  troupe serve --home %s\n  troupe cluster invite --home %s\n", found.Node(), c.home, c.home)
		return err
	})
	return cmd
}

// shardName says what people lose with a shard.
func shardName(sh persistence.Shard) string {
	if sh == persistence.Meta {
		return "the cluster's own shard (its members, credentials and definitions)"
	}
	return fmt.Sprintf("shard %d", sh)
}

// refuseWhole refuses to make a new cluster of a node whose own one has a majority: there would be two.
func (c *config) refuseWhole(ctx context.Context) error {
	node, err := c.loadNode(c.logger())
	if err != nil {
		return nil //nolint:nilerr // whoever is no node any more can ask nobody
	}
	defer func() { _ = node.ClosePort(ctx) }()
	others, all := node.Answering(ctx)
	if all == 1 {
		return fmt.Errorf("the cluster has this node alone, so nothing is lost; start it with `troupe serve --home %s`; nothing was changed", c.home)
	}
	if 2*(len(others)+1) > all {
		return fmt.Errorf("%d of the cluster's %d nodes answer: with this one they are most of them; start it with `troupe serve --home %s`; nothing was changed", len(others), all, c.home)
	}
	return nil
}

// startMax is how long an invitation waits for a server that starts.
const startMax = 15 * time.Second

// atNode adds to cmd what asks the node that runs on the home, or is starting there.
func atNode(cmd *cobra.Command, starting time.Duration, do func(ctx context.Context, node *admin.Client, args []string) error) *cobra.Command {
	c := newConfig()
	cmd.Flags().AddFlag(c.flags.Lookup("home"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := c.load(); err != nil {
			return err
		}
		socket := filepath.Join(c.home, adminSocket)
		node, err := admin.Dial(cmd.Context(), socket)
		for end := time.Now().Add(starting); errors.Is(err, admin.ErrNoServer) && c.isNode() && time.Now().Before(end); node, err = admin.Dial(cmd.Context(), socket) {
			select {
			case <-time.After(removeEvery / 5):
			case <-cmd.Context().Done():
				return cmd.Context().Err()
			}
		}
		if errors.Is(err, admin.ErrNoServer) {
			return fmt.Errorf("no server is running on %s: start it with `troupe serve --home %s`", c.home, c.home)
		}
		if err != nil {
			return err
		}
		return do(cmd.Context(), node, args)
	}
	return cmd
}

func newClusterInvite() *cobra.Command {
	expires := time.Hour
	cmd := &cobra.Command{
		Use:     "invite",
		Short:   "Print a key with which one more node can join the cluster",
		Long:    "Print a key with which one more node can join the cluster, alone, on standard output.\nWhoever has it can become a node, once, until it expires.",
		Example: "  troupe cluster invite --home ./a\n  troupe cluster invite --home ./a --expires 10m",
		Args:    arguments,
	}
	cmd.Flags().Var(checked(duration(&expires), isSessionTime), "expires", "time to its end, at least 1s")
	return atNode(cmd, startMax, func(ctx context.Context, node *admin.Client, _ []string) error {
		ctx, cancel := context.WithTimeout(ctx, commandTimeMax)
		defer cancel()
		key, err := node.Invite(ctx, expires)
		if err == nil {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), key)
		}
		return err
	})
}

// removeEvery is the pause between two looks at a node that is being removed.
const removeEvery = 500 * time.Millisecond

func newClusterRemove() *cobra.Command {
	lost := false
	cmd := &cobra.Command{
		Use:   "remove NODE",
		Short: "Take a node out of the cluster, after its shards have moved to others",
		Long: "Take a node out of the cluster. NODE is its id as `troupe cluster status` prints it. A\n" +
			"node that runs gives its shards to others first, and then ends. It goes on by itself\n" +
			"when this command is interrupted.",
		Example: "  troupe cluster remove 01K3Q4V7Z9W2M8N5P6R0S1T2A3 --home ./a\n" +
			"  troupe cluster remove 01K3Q4V7Z9W2M8N5P6R0S1T2A3 --home ./a --lost",
		Args: arguments,
	}
	cmd.Flags().BoolVar(&lost, "lost", false, "the node does not run and will not come back")
	return atNode(cmd, 0, func(ctx context.Context, node *admin.Client, args []string) error {
		id := strings.ToUpper(args[0]) // as the cluster has it
		begin, cancel := context.WithTimeout(ctx, commandTimeMax)
		defer cancel()
		before, err := clusterStatus(begin, node)
		if err != nil {
			return err
		}
		if err := node.RemoveNode(begin, id, lost); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "node %s is leaving; its shards are moving to other nodes\n", id)
		if err := awaitRemoved(ctx, node, id, string(before.Self) == id); err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "node %s was removed\n", id)
		return err
	})
}

// awaitRemoved waits until the cluster does not list a node any more. A node that is asked about itself
// ends instead; that another one does not answer says nothing.
func awaitRemoved(ctx context.Context, asked statusTeller, id string, itself bool) error {
	for {
		status, err := clusterStatus(ctx, asked)
		switch {
		case itself && errors.Is(err, admin.ErrNoServer):
			return nil
		case err != nil:
			return fmt.Errorf("node %s is leaving, and this command does not see whether it is gone: %w", id, err)
		case len(status.Nodes) > 0 && !slices.ContainsFunc(status.Nodes, func(n cluster.NodeStatus) bool { return string(n.ID) == id }):
			return nil // NB: a node that has only just started lists none
		}
		select {
		case <-time.After(removeEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
