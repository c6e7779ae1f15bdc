package config

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"syscall"

	"github.com/rs/zerolog"

	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/actors/repository"
	"troupe/actors/repository/bucket"
	"troupe/actors/repository/disk"
	"troupe/cmd/internal/build"
	"troupe/gateway"
	"troupe/gateway/provider"
	"troupe/persistence"
)

// Files is where the files of the repository are.
type Files interface {
	repository.Source
	io.Closer
}

// OpenFiles opens them. It reads nothing.
func (c *Config) OpenFiles(log zerolog.Logger) (Files, error) {
	if b, err := c.NewBucket(log); b != nil || err != nil {
		return b, err
	}
	return disk.Open(disk.Options{Dir: filepath.Join(c.Home, home.RepositoryFolder), Log: log})
}

// NewBucket makes the client of the object store with the files; nil when they are in the home.
func (c *Config) NewBucket(log zerolog.Logger) (*bucket.Bucket, error) {
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

// NewGateway makes the server of the main listener. It opens nothing.
func (c *Config) NewGateway(log zerolog.Logger) (*gateway.Server, error) {
	o := c.Gateway
	o.Build, o.Log = build.This().ForGateway(), log
	return gateway.New(o)
}

// NewProvider makes the client of the identity provider; nil when there is none. key is provider.Options.Key.
func (c *Config) NewProvider(key func() ([]byte, error), log zerolog.Logger) (*provider.Client, error) {
	if c.Provider.Issuer == "" {
		return nil, nil
	}
	o := c.Provider
	o.Key, o.Log = key, log
	p, err := provider.New(o)
	if err != nil {
		return nil, fmt.Errorf("the settings of oidc: %w", err)
	}
	return p, nil
}

// StartIdentities starts the service of identities.
func (c *Config) StartIdentities(store *persistence.Store, directory *identity.Directory, log zerolog.Logger) (*identity.Service, error) {
	o := c.Identity
	o.Store, o.Directory, o.Log = store, directory, log
	return identity.Start(o)
}

// ExplainAddress adds to an address that something else has, or that is another machine's, which setting chooses
// another.
func ExplainAddress(err error, setting string) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w; choose another address with --%s, or with %[2]s: in troupe.yaml", err, setting)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: this machine does not have it; give one that it has with --%s, or with %[2]s: in troupe.yaml", err, setting)
	}
	return err
}
