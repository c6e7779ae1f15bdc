package connect

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"

	"troupe/cmd/internal/cli"
)

// trust has the authorities of --ca, or of the context with the address; nil: the system's.
func (c *Connection) trust(address string) (*tls.Config, error) {
	name, path := "--ca", c.CA
	if path == "" {
		sources, err := c.sources()
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(sources, func(s source) bool { return s.CA != "" && SameAddress(s.Address, address) })
		if i < 0 {
			return nil, nil
		}
		name, path = "context "+sources[i].Name, sources[i].CA
	}
	return ReadAuthorities(name, path)
}

// ReadAuthorities reads a file of authorities to trust.
func ReadAuthorities(source, path string) (*tls.Config, error) {
	text, err := cli.ReadInputFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s %s: no certificate in PEM", source, path)
	}
	return &tls.Config{RootCAs: pool}, nil
}
