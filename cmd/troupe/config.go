package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	o := c.gateway
	o.Build, o.Log = buildOf(buildInfo()).forGateway(), log
	return gateway.New(o)
}

// newProvider makes the client of the identity provider; nil when there is none. key is
// provider.Options.Key.
func (c *config) newProvider(key func() ([]byte, error), log zerolog.Logger) (*provider.Client, error) {
	if c.provider.Issuer == "" {
		return nil, nil
	}
	o := c.provider
	o.Key, o.Log = key, log
	p, err := provider.New(o)
	if err != nil {
		return nil, fmt.Errorf("the settings of oidc: %w", err)
	}
	return p, nil
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
	return zerolog.New(c.logWriter()).Level(level).With().Timestamp().Logger()
}

// logsText reports whether the log is for a person.
func (c *config) logsText() bool {
	return c.logFormat == "text" || c.logFormat == "auto" && isTerminal(os.Stderr)
}

func (c *config) logWriter() io.Writer {
	if c.logsText() {
		return zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: time.TimeOnly}
	}
	return os.Stderr
}

func newConfigCommand() *cobra.Command {
	c := newConfig()
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show every setting, its value, where it comes from and what it means",
		Example: "  troupe config --home ./troupe-home\n" +
			"  TROUPE_LISTEN=:9000 troupe config",
		Args: arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.load(); err != nil {
				return err
			}
			rows := [][]string{{"KEY", "VALUE", "SOURCE", "ENVIRONMENT", "MEANING"}}
			for _, s := range c.settings {
				rows = append(rows, []string{keyName(s.name), s.value.String(), c.sources[s.name], envName(s.name), s.help})
			}
			return (&output{to: cmd.OutOrStdout()}).table(rows)
		},
	}
	cmd.Flags().AddFlagSet(c.flags)
	return cmd
}
