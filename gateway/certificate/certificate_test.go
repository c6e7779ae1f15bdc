package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/logtest"
	"troupe/gateway/certificate/certificatetest"
	"troupe/persistence/clocktest"
)

// shown is the common name of the certificate that a new connection gets.
func shown(t *testing.T, f *Files, client *tls.Config) string {
	t.Helper()
	one, other := net.Pipe()
	defer func() { _ = one.Close() }()
	go func() { _ = tls.Server(other, f.Config()).Handshake() }() // the client has its error
	client = client.Clone()
	client.ServerName = "localhost"
	c := tls.Client(one, client)
	require.NoError(t, c.Handshake())
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName
}

// TestReplacedFilesAreTaken: a change is in use as soon as all of it is there, what cannot be used leaves the one before
// in use and is said once, and a swapped link of a folder above, as Kubernetes has it, is a change.
func TestReplacedFilesAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, dir := certificatetest.NewAuthority(t), t.TempDir()
		in := func(folder, file string) string { return filepath.Join(dir, folder, file) }
		for _, folder := range []string{"first", "second"} {
			require.NoError(t, os.Mkdir(filepath.Join(dir, folder), 0o700))
			a.Write(t, in(folder, "tls.crt"), in(folder, "tls.key"), folder)
		}
		require.NoError(t, os.Symlink("first", filepath.Join(dir, "data")))
		log := new(logtest.Log)
		f, err := Open(Options{Cert: in("data", "tls.crt"), Key: in("data", "tls.key"), Log: zerolog.New(log)})
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Stop(context.Background())) }()
		client := a.Client(t, nil, "", nil)
		assert.Equal(t, "first", shown(t, f, client))

		require.NoError(t, os.Symlink("second", filepath.Join(dir, "new")))
		require.NoError(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "data")))
		clocktest.Advance(2 * lookEvery)
		assert.Equal(t, "second", shown(t, f, client))
		require.NoError(t, f.Ready())

		cert, key := a.Sign(t, "third", nil)
		require.NoError(t, os.WriteFile(in("data", "tls.crt"), cert, 0o600))
		clocktest.Advance(10 * lookEvery)
		assert.Equal(t, "second", shown(t, f, client), "half of a new pair")
		require.EqualError(t, f.Ready(), "the changed certificate cannot be used, the one before stays in use: tls.cert and tls.key: private key does not match public key")
		assert.Equal(t, 1, log.Count("does not match"), "said once")
		require.NoError(t, os.WriteFile(in("data", "tls.key"), key, 0o600))
		clocktest.Advance(2 * lookEvery)
		assert.Equal(t, "third", shown(t, f, client))
		require.NoError(t, f.Ready())

		require.NoError(t, os.Remove(in("data", "tls.key")))
		require.NoError(t, syscall.Mkfifo(in("data", "tls.key"), 0o600))
		clocktest.Advance(2 * lookEvery)
		require.ErrorContains(t, f.Ready(), "tls.key is not a regular file")
		require.NoError(t, os.Remove(in("data", "tls.key")))
		clocktest.Advance(2 * lookEvery)
		require.ErrorContains(t, f.Ready(), "no such file")
		assert.Equal(t, "third", shown(t, f, client))
		clocktest.Advance(time.Hour)
		require.NoError(t, os.WriteFile(in("data", "tls.key"), key, 0o600))
		clocktest.Advance(lookEvery)
		require.ErrorContains(t, f.Ready(), "expired at", "the files are what is in use again, and too old")
	})
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	a, dir := certificatetest.NewAuthority(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	a.Write(t, at("crt"), at("key"), "service")
	require.NoError(t, os.WriteFile(at("text"), []byte("no PEM\n"), 0o600))
	require.NoError(t, os.WriteFile(at("empty"), nil, 0o600))
	require.NoError(t, os.WriteFile(at("large"), nil, 0o600))
	require.NoError(t, os.Truncate(at("large"), fileBytesMax+1))
	for want, o := range map[string]Options{
		"tls.cert: " + dir + " is not a regular file":                            {Cert: dir, Key: at("key")},
		"tls.cert: " + at("large") + " is larger than 4 MiB":                     {Cert: at("large"), Key: at("key")},
		"tls.cert: open " + at("none") + ": no such file or directory":           {Cert: at("none"), Key: at("key")},
		"tls.key: open " + at("none") + ": no such file or directory":            {Cert: at("crt"), Key: at("none")},
		"tls.cert and tls.key: failed to find any PEM data in certificate input": {Cert: at("text"), Key: at("key")},
		"tls.clientCA: no certificate in PEM":                                    {Cert: at("crt"), Key: at("key"), ClientCA: at("text")},
		"tls.clientCA: " + at("empty") + " is empty":                             {Cert: at("crt"), Key: at("key"), ClientCA: at("empty")},
	} {
		_, err := Open(o)
		assert.EqualError(t, err, want)
	}
}

// TestWhomACertificateStandsFor holds gateway/INTERFACE.md, "Client certificates".
func TestWhomACertificateStandsFor(t *testing.T) {
	a, other, dir := certificatetest.NewAuthority(t), certificatetest.NewAuthority(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	a.Write(t, at("crt"), at("key"), "service")
	require.NoError(t, os.WriteFile(at("ca"), a.PEM, 0o600))
	f, err := Open(Options{Cert: at("crt"), Key: at("key"), ClientCA: at("ca")})
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Stop(context.Background())) }()
	uris := func(texts ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			for _, text := range texts {
				u, err := url.Parse(text)
				require.NoError(t, err)
				c.URIs = append(c.URIs, u)
			}
		}
	}
	twoNames := func(c *x509.Certificate) {
		c.Subject.ExtraNames = append(c.Subject.ExtraNames, pkix.AttributeTypeAndValue{Type: commonName, Value: "bob"}, pkix.AttributeTypeAndValue{Type: commonName, Value: "ann"})
	}
	connect := func(client *tls.Config) (*tls.ConnectionState, error) {
		one, two := net.Pipe()
		defer func() { _ = one.Close() }()
		client.ServerName = "localhost"
		go func() { _, _ = tls.Client(one, client).Read(make([]byte, 1)) }() // the server has its error
		server := tls.Server(two, f.Config())
		err := server.Handshake()
		state := server.ConnectionState()
		return &state, err
	}
	for line, c := range map[string]struct {
		change func(*x509.Certificate)
		want   string
	}{
		"by its common name":            {nil, "ann"},
		"by its URI":                    {uris("https://example.com", "troupe:user/bob"), "bob"},
		"nobody by two URIs":            {uris("troupe:user/bob", "troupe:user/ann"), ""},
		"nobody by a URI of other form": {uris("troupe:role/manager"), ""},
		"nobody by two common names":    {twoNames, ""},
	} {
		state, err := connect(a.Client(t, a, "ann", c.change))
		require.NoError(t, err, line)
		user, has := f.User(state)
		assert.True(t, has && user == c.want, "%s: got %q, want %q", line, user, c.want)
	}
	state, err := connect(a.Client(t, nil, "", nil))
	require.NoError(t, err, "without one")
	_, has := f.User(state)
	assert.False(t, has)
	_, err = connect(a.Client(t, other, "ann", nil))
	require.ErrorContains(t, err, "unknown authority")
	_, err = connect(a.Client(t, a, "ann", func(c *x509.Certificate) { c.NotAfter = time.Unix(1, 0) }))
	require.ErrorContains(t, err, "expired")

	open, err := connect(a.Client(t, a, "ann", nil))
	require.NoError(t, err)
	require.NoError(t, f.Stop(context.Background())) // the test looks itself
	require.NoError(t, os.WriteFile(at("ca"), other.PEM, 0o600))
	f.look()
	f.look()
	user, has := f.User(open)
	assert.True(t, has && user == "", "an open connection is nobody's when its authority is gone, got %q", user)
}
