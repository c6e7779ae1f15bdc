package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"slices"
	"strings"
	"time"
)

// User returns whom a connection's certificate stands for, empty for nobody. shown: the client has shown one.
// NB: connections live longer than the file of authorities and some certificates, so both are looked at each time.
func (f *Files) User(of *tls.ConnectionState) (user string, shown bool) {
	if of == nil || len(of.PeerCertificates) == 0 {
		return "", false
	}
	now, roots := time.Now(), f.inUse.Load().roots
	isValid := func(chain []*x509.Certificate) bool {
		return roots[string(chain[len(chain)-1].Raw)] &&
			!slices.ContainsFunc(chain, func(c *x509.Certificate) bool { return now.After(c.NotAfter) })
	}
	if !slices.ContainsFunc(of.VerifiedChains, isValid) {
		return "", true
	}
	return named(of.PeerCertificates[0]), true
}

// uriPrefix begins the name in a certificate that says which user it is for.
const uriPrefix = "troupe:user/"

var commonName = asn1.ObjectIdentifier{2, 5, 4, 3}

// named is the user that a certificate names: by its only URI of the scheme troupe, or without one by its only common name.
func named(c *x509.Certificate) string {
	user, names := "", 0
	for _, uri := range c.URIs {
		if uri.Scheme != "troupe" {
			continue
		}
		name, ok := strings.CutPrefix(uri.String(), uriPrefix)
		if !ok {
			return ""
		}
		user, names = name, names+1
	}
	if names == 0 {
		user = c.Subject.CommonName // NB: the last one
		for _, name := range c.Subject.Names {
			if name.Type.Equal(commonName) {
				names++
			}
		}
	}
	if names != 1 {
		return ""
	}
	return user
}

// nextCertificate returns the DER of the first certificate of a text in PEM, nil when there is none left.
func nextCertificate(text []byte) (der, rest []byte) {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return nil, nil
		}
		if block.Type == "CERTIFICATE" {
			return block.Bytes, rest
		}
		text = rest
	}
}
