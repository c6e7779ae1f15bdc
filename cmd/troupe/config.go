package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/actors/repository"
	"troupe/actors/repository/bucket"
	"troupe/actors/repository/disk"
	"troupe/gateway"
	"troupe/gateway/provider"
	"troupe/persistence"
)

// files is where the files of the repository are.
type files interface {
	repository.Source
	io.Closer
}

// newFiles opens them. It reads nothing.
func (c *config) newFiles(log zerolog.Logger) (files, error) {
	if b, err := c.newBucket(log); b != nil || err != nil {
		return b, err
	}
	return disk.Open(disk.Options{Dir: filepath.Join(c.home, home.RepositoryFolder), Log: log})
}

// newBucket makes the client of the object store with the files; nil when they are
// in the home.
func (c *config) newBucket(log zerolog.Logger) (*bucket.Bucket, error) {
	if c.bucket.Bucket == "" {
		return nil, nil
	}
	o := c.bucket
	o.Log = log
	b, err := bucket.Open(o)
	if err != nil {
		return nil, fmt.Errorf("the settings of the repository: %w", err)
	}
	return b, nil
}

// newGateway makes the server of the main listener. It opens nothing.
func (c *config) newGateway(log zerolog.Logger) (*gateway.Server, error) {
	if _, _, err := net.SplitHostPort(c.gateway.Addr); err != nil {
		return nil, fmt.Errorf("the setting listen: %w", err)
	}
	o := c.gateway
	o.Build, o.Log = buildOf(buildInfo()).forGateway(), log
	return gateway.New(o)
}

// newProvider makes the client of the identity provider; nil when there is none.
func (c *config) newProvider(log zerolog.Logger) (*provider.Client, error) {
	if c.provider.Issuer == "" {
		return nil, nil
	}
	o := c.provider
	o.Log = log
	return provider.New(o)
}

// startIdentities starts the service of identities.
func (c *config) startIdentities(store *persistence.Store, directory *identity.Directory, log zerolog.Logger) (*identity.Service, error) {
	o := c.identity
	o.Store, o.Directory, o.Log = store, directory, log
	return identity.Start(o)
}

// logger writes to standard error.
func (c *config) logger() zerolog.Logger {
	level, _ := zerolog.ParseLevel(c.logLevel) // isLogLevel has looked at it
	text := c.logFormat == "text"
	if c.logFormat == "auto" {
		st, err := os.Stderr.Stat()
		text = err == nil && st.Mode()&os.ModeCharDevice != 0
	}
	if text {
		return zerolog.New(zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: time.TimeOnly}).Level(level).With().Timestamp().Logger()
	}
	return zerolog.New(os.Stderr).Level(level).With().Timestamp().Logger()
}

func newConfigCommand() *cobra.Command {
	c := newConfig()
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show every setting, its value, where it comes from and what it means",
		Example: "  troupe config --home ./troupe-home\n" +
			"  TROUPE_LISTEN=:9000 troupe config",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.load(); err != nil {
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			_, _ = fmt.Fprintln(w, "KEY\tVALUE\tSOURCE\tENVIRONMENT\tMEANING")
			for _, s := range c.settings {
				_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", keyName(s.name), s.value, c.sources[s.name], envName(s.name), s.help)
			}
			return w.Flush()
		},
	}
	cmd.Flags().AddFlagSet(c.flags)
	return cmd
}
