package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
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

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"troupe/actors/cluster"
	"troupe/actors/cluster/peer"
	"troupe/cmd/internal/build"
	"troupe/cmd/internal/homedir"
	"troupe/persistence"
)

// IsNode says whether the home is that of a node of a cluster.
func (c *Config) IsNode() bool { return cluster.Exists(homedir.NodeFolder(c.Home)) }

// WasNode says whether the home had a store and wants to be a node, whatever happened to its identity.
func (c *Config) WasNode() bool {
	return !c.IsNode() && c.Cluster.Listen != "" && homedir.Exists(filepath.Join(c.Home, homedir.StoreIDFile))
}

// AdviceForNode adds to an error about a node what to do.
func (c *Config) AdviceForNode(err error) error {
	id := "NODE"
	if identity, err := peer.LoadIdentity(filepath.Join(homedir.NodeFolder(c.Home), cluster.IdentityFile)); err == nil {
		id = string(identity.Node())
	}
	return fmt.Errorf("%w. The other nodes rely on what this node had, so neither an empty store nor a backup can replace it: "+
		"run `troupe cluster remove %s --lost` on another node, then empty %s and have it join again; if there is no other node, restore a backup of %s, then run `troupe cluster recover`",
		err, id, c.Home, homedir.Data(c.Home))
}

// BoundFile lies beside a node's identity, from its first start on, and has what .store has: the identity is of use
// with that store alone.
const BoundFile = "store"

// DemandStore has .store demand the store that the node had.
func (c *Config) DemandStore() error {
	bound, err := os.ReadFile(filepath.Join(homedir.NodeFolder(c.Home), BoundFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	path := filepath.Join(c.Home, homedir.StoreIDFile)
	if err == nil {
		err = homedir.DemandFile(path)
	}
	if err != nil {
		return err
	}
	demanded, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.WriteFile(path, bound, 0o644)
	case err == nil && !bytes.Equal(demanded, bound):
		err = c.AdviceForNode(fmt.Errorf("%w: %s requires a different store", persistence.ErrOtherStore, path))
	}
	return err
}

// BindStore binds the identity of the node to the store that is open.
func (c *Config) BindStore() error {
	text, err := os.ReadFile(filepath.Join(c.Home, homedir.StoreIDFile))
	path := filepath.Join(homedir.NodeFolder(c.Home), BoundFile)
	if err != nil || homedir.Exists(path) {
		return err
	}
	return peer.ReplaceFile(path, text)
}

// ErrNeedsServer is the error of commands that would write into a replica.
func (c *Config) ErrNeedsServer() error {
	return fmt.Errorf("%s is a node of a cluster: start it with `troupe serve --home %s`; only its server can open its store", c.Home, c.Home)
}

// LoadNode reads what the home's node is.
func (c *Config) LoadNode(log zerolog.Logger) (_ *cluster.Node, err error) {
	o := c.Cluster
	o.Dir, o.Log = homedir.NodeFolder(c.Home), log
	if o.Advertise, err = c.Advertised(); err != nil {
		return nil, fmt.Errorf("%s is a node of a cluster: %w", c.Home, err)
	}
	o.Version, o.Shards = build.This().Version, c.Store.Shards
	o.Settings, o.Changed = c.sharedSettings()
	node, err := cluster.Load(o)
	if errors.Is(err, cluster.ErrIdentity) {
		err = c.AdviceForNode(err)
	}
	return node, err
}

var localSettings = []string{"home", "listen", "admin", "cluster.listen", "cluster.advertise", "cluster.name", "log-level", "log-format", "shards"}

func (c *Config) sharedSettings() (all string, changed map[string]string) {
	h := sha256.New()
	changed = map[string]string{}
	standard := New()
	for i, s := range c.Settings {
		if slices.Contains(localSettings, s.Name) {
			continue
		}
		line := fmt.Sprintf("%s=%q\n", s.Name, s.Value.String())
		_, _ = io.WriteString(h, line)
		if s.Value.String() != standard.Settings[i].Value.String() {
			sum := sha256.Sum256([]byte(line))
			changed[KeyName(s.Name)] = hex.EncodeToString(sum[:8])
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), changed
}

// Advertised is the address of the cluster port as others reach it.
func (c *Config) Advertised() (string, error) {
	if c.Cluster.Listen == "" {
		return "", errors.New("--cluster-listen is required: the address where other nodes reach this one, such as 10.0.0.1:9400")
	}
	if c.Cluster.Advertise != "" {
		if err := peer.CheckAddress(c.Cluster.Advertise); err != nil {
			return "", fmt.Errorf("other nodes cannot reach this node at --cluster-advertise: %w", err)
		}
		return c.Cluster.Advertise, nil
	}
	host, port, err := net.SplitHostPort(c.Cluster.Listen)
	if ip := net.ParseIP(host); err != nil || host == "" || ip != nil && ip.IsUnspecified() || port == "0" {
		return "", fmt.Errorf("other nodes cannot reach %s: give --cluster-advertise as well, such as 10.0.0.1:9400", c.Cluster.Listen)
	}
	return c.Cluster.Listen, nil
}

// FileOnly are the settings as the home's file alone has them.
func (c *Config) FileOnly() (*Config, error) {
	of := New()
	of.Home = c.Home
	for _, s := range of.Settings {
		of.sources[s.Name] = "default"
	}
	return of, of.loadFile()
}

// FitsFile refuses flags of a node that its settings file contradicts: serve reads the file.
func (c *Config) FitsFile() error {
	of, err := c.FileOnly()
	if err != nil {
		return err
	}
	for _, name := range []string{"cluster.listen", "cluster.advertise"} {
		now, kept := c.Flags.Lookup(name).Value.String(), of.Flags.Lookup(name).Value.String()
		if kept != "" && kept != now {
			return fmt.Errorf("%s has %s: %s, not %s: change it there", homedir.SettingsFile, name, kept, now)
		}
	}
	return nil
}

// KeepInFile writes what a node needs to know at its start into the home's settings file, unless it is there.
func (c *Config) KeepInFile(advertise string) error {
	of, err := c.FileOnly()
	if err != nil || of.Cluster.Listen != "" {
		return err
	}
	path := filepath.Join(c.Home, homedir.SettingsFile)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "cluster:") {
			return fmt.Errorf("the group cluster of %s has no listen: add `listen: %s`", homedir.SettingsFile, c.Cluster.Listen)
		}
	}
	add := "cluster:\n  listen: " + strconv.Quote(c.Cluster.Listen) + "\n"
	if advertise != c.Cluster.Listen {
		add += "  advertise: " + strconv.Quote(advertise) + "\n"
	}
	if c.Cluster.Name != "" && of.Cluster.Name == "" {
		add += "  name: " + strconv.Quote(c.Cluster.Name) + "\n"
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		add = "\n" + add
	}
	return homedir.AppendDurably(path, add)
}

// Dotted takes the settings of the cluster with a hyphen too.
func Dotted(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if rest, ok := strings.CutPrefix(name, "cluster-"); ok {
		name = "cluster." + rest
	}
	return pflag.NormalizedName(name)
}

// StoreOptions are those of every opening of the home's store.
func (c *Config) StoreOptions(log zerolog.Logger) persistence.Options {
	o := c.Store
	o.Log, o.IDFile = log, filepath.Join(c.Home, homedir.StoreIDFile)
	return o
}

// OpenStore opens the home's store. It is created only in a home that never had one.
func (c *Config) OpenStore(log zerolog.Logger) (*persistence.Store, error) {
	dir := homedir.Data(c.Home)
	if err := homedir.DemandFile(filepath.Join(c.Home, homedir.StoreIDFile)); err != nil {
		return nil, err
	}
	if c.IsNode() {
		return nil, c.ErrNeedsServer()
	}
	store, err := persistence.Open(dir, c.StoreOptions(log))
	if err != nil {
		return nil, c.WithAdvice(err)
	}
	return store, nil
}

// WithAdvice adds to an error about the home's store what to do.
func (c *Config) WithAdvice(err error) error {
	lost := errors.Is(err, persistence.ErrMissing)
	switch {
	case c.IsNode() && isOneOf(err, persistence.ErrMissing, persistence.ErrDamaged, persistence.ErrReplicaDamaged, persistence.ErrIncomplete, persistence.ErrOtherStore), lost && c.WasNode():
		return c.AdviceForNode(err)
	case errors.Is(err, persistence.ErrDamaged):
		return fmt.Errorf("%w. Restore the whole of %s from a backup", err, homedir.Data(c.Home))
	case lost:
		return fmt.Errorf("%w. Mount %s, or restore it from a backup; if it is lost for good, `troupe store create --home %s` creates an empty store",
			err, homedir.Data(c.Home), c.Home)
	case errors.Is(err, persistence.ErrReplicated):
		return fmt.Errorf("%w: it belongs to a node of a cluster, but %s, which says which node, is missing. Restore it from a copy; if the node is the last one, run `troupe cluster recover`",
			err, homedir.NodeFolder(c.Home))
	case errors.Is(err, persistence.ErrStandalone):
		return fmt.Errorf("%w: `troupe cluster init` was interrupted; run it again on --home %s to continue", err, c.Home)
	case errors.Is(err, persistence.ErrOtherStore):
		return fmt.Errorf("%w. Restore the right store, or remove %s to use the one that is there",
			err, filepath.Join(c.Home, homedir.StoreIDFile))
	}
	return err
}

func isOneOf(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}
