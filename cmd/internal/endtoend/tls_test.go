package endtoend

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/clitest"
	"troupe/gateway/certificate/certificatetest"
)

// TestTLS is a service with a certificate, as cmd/troupe/HOME.md, "TLS", has it: replaced while it runs, with clients that
// have certificates in place of tokens, and commands that trust its authority.
func TestTLS(t *testing.T) {
	a := certificatetest.NewAuthority(t)
	h := newHome(t, flows())
	put := func(commonName string) (key string) {
		cert, text := a.Sign(t, commonName, nil)
		h.write("tls.crt", string(cert))
		return string(text)
	}
	h.write("tls.key", put("first"))
	h.write("ca.pem", string(a.PEM))
	p := launch(t, h, binary(), "--tls.cert", "tls.crt", "--tls.key", "tls.key", "--tls.client-ca", "ca.pem", "--log-format", "json")
	p.wantLine("troupe is ready at https://127.0.0.1:")
	address, token := "https://"+p.address(), filepath.Join(h.dir, "token")
	require.NoError(t, os.WriteFile(token, []byte(h.token("ann")), 0o600))

	// ask answers with the common name of the certificate, on a new connection.
	ask := func(path string) (commonName, answer string) {
		transport := &http.Transport{TLSClientConfig: a.Client(t, a, "ann", nil), ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		in, err := (&http.Client{Transport: transport}).Get(address + path)
		require.NoError(t, err)
		defer func() { _ = in.Body.Close() }()
		text, err := io.ReadAll(in.Body)
		require.NoError(t, err)
		return in.TLS.PeerCertificates[0].Subject.CommonName, in.Proto + " " + in.Status + "\n" + string(text)
	}
	name, choices := ask("/workflow/api/v1/choices")
	assert.Equal(t, "first", name)
	assert.Contains(t, choices, "HTTP/2.0 200 OK")
	assert.Contains(t, choices, `"plain"`, "what ann may create")

	clitest.Isolated(t)
	ca := filepath.Join(h.dir, "ca.pem")
	wantCommand(t, "instance", "create", "plain", "--address", address, "--ca", ca, "--token-file", token)
	wantCommand(t, "context", "set", "here", "--address", address, "--ca", ca, "--token-file", token)
	wantCommand(t, "instance", "create", "plain")
	cert, secret := a.Sign(t, "ann", nil)
	h.write("ann.pem", string(cert)+string(secret))
	wantCommand(t, "instance", "create", "plain", "--address", address, "--ca", ca, "--cert", filepath.Join(h.dir, "ann.pem"))
	h.write("ann.crt", string(cert))
	h.write("ann.key", string(secret))
	wantCommand(t, "context", "set", "certified", "--address", address, "--ca", ca, "--cert", filepath.Join(h.dir, "ann.crt"), "--cert-key", filepath.Join(h.dir, "ann.key"))
	wantCommand(t, "instance", "create", "plain", "--context", "certified")
	text, err := exec.Command(binary(), "instance", "list", "plain", "--address", address, "--token-file", token).CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(text), "--ca FILE")

	h.write("tls.key", put("second"))
	p.await("the second certificate", func() bool { name, _ := ask("/livez"); return name == "second" })
	key := put("third")
	p.await("the part of /readyz", func() bool {
		name, parts := ask("/readyz?verbose")
		return name == "second" && strings.Contains(parts, "HTTP/2.0 200 OK") &&
			strings.Contains(parts, `"certificate","ready":false`) && strings.Contains(parts, "the one before stays in use")
	})
	p.stop()

	// What stays in use while it runs is not enough for a start.
	again := launch(t, h, binary(), "--tls.cert", "tls.crt", "--tls.key", "tls.key")
	again.quiet = true
	assert.Equal(t, 1, again.wait())
	assert.Contains(t, again.log.all(), "troupe: tls.cert and tls.key: private key does not match public key\n")
	h.write("tls.key", key)
	launch(t, h, binary(), "--tls.cert", "tls.crt", "--tls.key", "tls.key").wantLine("troupe is ready at https://")
}
