package connect

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
)

// TLS is whom a command trusts over https, and how it says who it is: files in PEM, empty for the system's authorities
// and for no certificate.
type TLS struct {
	CA   string `json:"ca,omitempty"`
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"` // empty: the key is in the file of Cert
}

// AddFlags adds the flags of the files.
func (t *TLS) AddFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.CA, "ca", "", "file with the authorities that sign the service's certificate, PEM (default: the context's, else the system's)")
	f.StringVar(&t.Cert, "cert", "", "file with a client certificate in place of a token, PEM (default: the context's)")
	f.StringVar(&t.Key, "cert-key", "", "file with the key of --cert, PEM (default: the file of --cert)")
}

// TLS reads the files of the flags, and what these do not name from those of the context with the address; nil: there
// are none.
func (c *Connection) TLS(address string) (*tls.Config, error) {
	if c.Over.Key != "" && c.Over.Cert == "" {
		return nil, errKeyAlone
	}
	all, ca, cert := c.Over, "--ca", "--cert"
	if all.CA == "" || all.Cert == "" {
		sources, err := c.sources()
		if err != nil {
			return nil, err
		}
		for _, s := range sources {
			if s.Name == "" || !SameAddress(s.Address, address) {
				continue
			}
			if all.CA == "" && s.CA != "" {
				all.CA, ca = s.CA, "context "+s.Name
			}
			if all.Cert == "" && s.Cert != "" {
				all.Cert, all.Key, cert = s.Cert, s.Key, "context "+s.Name
			}
		}
	}
	return all.read(ca, cert)
}

// Take takes over the files that flags name, each by its whole path, if they can be used.
func (t *TLS) Take(flags TLS) (err error) {
	if flags.Key != "" && flags.Cert == "" {
		return errKeyAlone
	}
	if _, err = flags.read("--ca", "--cert"); err != nil {
		return err
	}
	if flags.CA != "" {
		if t.CA, err = filepath.Abs(flags.CA); err != nil {
			return err
		}
	}
	if flags.Cert == "" {
		return nil
	}
	t.Key = ""
	if flags.Key != "" {
		if t.Key, err = filepath.Abs(flags.Key); err != nil {
			return err
		}
	}
	t.Cert, err = filepath.Abs(flags.Cert)
	return err
}

var errKeyAlone = cli.Usagef("--cert-key is the key of --cert, which is missing")

// ca and cert are what named the files.
func (t *TLS) read(ca, cert string) (*tls.Config, error) {
	if *t == (TLS{}) {
		return nil, nil
	}
	config := &tls.Config{}
	if t.CA != "" {
		text, err := cli.ReadInputFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ca, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s %s: no certificate in PEM", ca, t.CA)
		}
	}
	if t.Cert != "" {
		own, err := tls.LoadX509KeyPair(t.Cert, cmp.Or(t.Key, t.Cert))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cert, err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}
