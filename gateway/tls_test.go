package gateway

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/watch"
	"troupe/gateway/certificate"
	"troupe/gateway/certificate/certificatetest"
)

// overTLS is a server with a certificate of an authority, which also signs those of clients.
type overTLS struct {
	*testServer
	authority *certificatetest.Authority
}

func startOverTLS(t *testing.T, o Options, workflows *fakeWorkflows) *overTLS {
	t.Helper()
	a, dir := certificatetest.NewAuthority(t), t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	a.Write(t, in("crt"), in("key"), "service")
	require.NoError(t, os.WriteFile(in("ca"), a.PEM, 0o600))
	files, err := certificate.Open(certificate.Options{Cert: in("crt"), Key: in("key"), ClientCA: in("ca")})
	require.NoError(t, err)
	t.Cleanup(func() { stop(t, files) })
	o.TLS = files
	return &overTLS{startServer(t, o, workflows), a}
}

// browser makes a client with connections of its own.
func (s *overTLS) browser(t *testing.T, config *tls.Config) *http.Client {
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ask sends a request and reads the answer.
func (s *overTLS) ask(t *testing.T, c *http.Client, method, path string, body io.Reader, headers ...string) answer {
	t.Helper()
	in, err := c.Do(s.request(t, method, path, body, headers...))
	require.NoError(t, err)
	defer func() { _ = in.Body.Close() }()
	text, err := io.ReadAll(in.Body)
	require.NoError(t, err)
	assert.Equal(t, 2, in.ProtoMajor)
	return answer{Status: in.StatusCode, Header: in.Header, Body: string(text)}
}

func (s *overTLS) request(t *testing.T, method, path string, body io.Reader, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://"+s.Addr().String()+path, body)
	require.NoError(t, err)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	return r
}

// event sends an event over TLS.
func (s *overTLS) event(t *testing.T, c *http.Client, headers ...string) answer {
	t.Helper()
	return s.ask(t, c, "POST", "/workflow/api/v1/event", strings.NewReader(eventBody), append(headers, "Content-Type: application/json")...)
}

// TestTLS holds gateway/INTERFACE.md, "TLS and HTTP/2".
func TestTLS(t *testing.T) {
	f := newFeed()
	s := startOverTLS(t, Options{}, f.workflows())
	browser := s.browser(t, s.authority.Client(t, nil, "", nil))

	signedIn := s.ask(t, browser, "POST", "/session", strings.NewReader(signInBody), "Content-Type: application/json")
	require.Equal(t, 200, signedIn.Status, signedIn.Body)
	assert.Equal(t, "max-age=31536000", signedIn.Header.Get("Strict-Transport-Security"))
	assert.Contains(t, signedIn.Header.Get("Set-Cookie"), "; Secure")

	older := s.authority.Client(t, nil, "", nil)
	older.NextProtos = []string{"http/1.1"}
	c, err := tls.Dial("tcp", s.Addr().String(), older)
	require.NoError(t, err)
	_, err = c.Write([]byte("GET /livez HTTP/1.1\r\nHost: localhost:8080\r\nConnection: close\r\n\r\n"))
	require.NoError(t, err)
	text, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.Contains(t, string(text), "HTTP/1.1 200 OK")
	assert.NotContains(t, string(text), "Strict-Transport-Security", "it would bind the other programs of that machine")
	older.MinVersion, older.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	_, err = tls.Dial("tcp", s.Addr().String(), older)
	require.ErrorContains(t, err, "protocol version")

	// One connection has a watcher, requests beside it, and one that is cut without the others.
	waitFor(t, "the older ones to be gone", func() bool { return s.Metrics().Connections == 1 })
	watcher, err := browser.Do(s.request(t, "GET", watchPath, nil, withToken))
	require.NoError(t, err)
	defer func() { _ = watcher.Body.Close() }()
	stream := bufio.NewReader(watcher.Body)
	line := func() string {
		text, _ := stream.ReadString('\n')
		return text
	}
	require.Equal(t, "retry: 2000\n", line())
	for range 3 {
		require.Equal(t, 200, s.event(t, browser, withToken).Status)
	}
	f.events <- watch.Event{Kind: watch.Heartbeat}
	for line() != ": beat\n" {
	}
	assert.EqualValues(t, 1, s.Metrics().Connections)

	// Stop ends the stream cleanly, and answers no request after that.
	stopped := make(chan error)
	go func() { stopped <- s.Stop(context.Background()) }()
	_, err = io.ReadAll(stream)
	require.NoError(t, err, "the end of the stream")
	require.NoError(t, <-stopped)
	assert.Zero(t, s.Metrics().Connections)
}

// TestOneUserOverHTTP2 holds gateway/INTERFACE.md, "Fair shares", for requests that share a connection.
func TestOneUserOverHTTP2(t *testing.T) {
	s := startOverTLS(t, Options{InFlightMax: 16}, nil)
	browser := s.browser(t, s.authority.Client(t, nil, "", nil))
	mine := s.kernel.Usage.Of(ann.ID)
	var bodies []io.Closer
	for n := range 8 {
		r, w := io.Pipe()
		bodies = append(bodies, w)
		go func() {
			q := s.request(t, "POST", "/workflow/api/v1/event", r, withToken, "Content-Type: application/json")
			if answer, err := browser.Do(q); err == nil {
				_ = answer.Body.Close()
			}
		}()
		waitFor(t, "the request to be counted", func() bool { return mine.Requests.Load() == int64(n+1) })
	}
	s.event(t, browser, withToken).WantFault(t, 503, "Busy")
	assert.Equal(t, 200, s.event(t, browser, asBob).Status, "another user")
	assert.EqualValues(t, 1, s.Metrics().Connections)
	for _, c := range bodies {
		_ = c.Close()
	}
	waitFor(t, "the slow ones to be gone", func() bool { return s.Metrics().InFlight == 0 })
}

// TestClientCertificates holds gateway/INTERFACE.md, "Client certificates".
func TestClientCertificates(t *testing.T) {
	s := startOverTLS(t, Options{}, nil)
	const path = "/workflow/api/v1/instance/leave/" + instanceOne
	signed := func(signer *certificatetest.Authority, name string, change func(*x509.Certificate)) *http.Client {
		return s.browser(t, s.authority.Client(t, signer, name, change))
	}
	asAnn := signed(s.authority, "ann", nil)
	for line, c := range map[string]struct {
		client  *http.Client
		path    string
		headers []string
		status  int
	}{
		"a certificate":                    {asAnn, path, nil, 200},
		"of nobody known":                  {signed(s.authority, "eve", nil), path, nil, 401},
		"none":                             {signed(nil, "", nil), path, nil, 401},
		"a token beside it counts alone":   {asAnn, path, []string{withToken + "x"}, 401},
		"a session beside it counts alone": {asAnn, path, []string{"Cookie: session=" + strings.Repeat("x", 43)}, 401},
		"where only sessions are accepted": {asAnn, "/session", nil, 401},
		"a page of another site":           {asAnn, path, []string{"Sec-Fetch-Site: cross-site"}, 200}, // a link; it cannot read it
		"without a need":                   {asAnn, "/livez", nil, 200},
	} {
		a := s.ask(t, c.client, "GET", c.path, nil, c.headers...)
		assert.Equal(t, c.status, a.Status, "%s: %s", line, a.Body)
	}
	assert.Equal(t, 403, s.event(t, asAnn, "Sec-Fetch-Site: cross-site").Status, "a page of another site that changes something")
	unknown := signed(certificatetest.NewAuthority(t), "ann", nil)
	connection, err := tls.Dial("tcp", s.Addr().String(), unknown.Transport.(*http.Transport).TLSClientConfig)
	require.NoError(t, err)
	defer func() { _ = connection.Close() }() // it has ended
	_, err = connection.Read(make([]byte, 1)) // NB: who writes may find it closed before he reads why
	assert.ErrorContains(t, err, "unknown certificate authority")
}

// TestCORS holds gateway/INTERFACE.md, "Calls from other sites".
func TestCORS(t *testing.T) {
	for _, c := range []struct {
		origins       []string
		origin, allow string
	}{
		{nil, "https://app.example.com", ""},
		{[]string{"https://app.example.com", "http://localhost:3000"}, "http://localhost:3000", "http://localhost:3000"},
		{[]string{"https://app.example.com"}, "https://app.example.com.evil.example", ""},
		{[]string{"https://app.example.com"}, "null", ""},
		{[]string{"*"}, "https://anybody.example", "https://anybody.example"},
	} {
		s := startServer(t, Options{Origins: c.origins}, nil)
		origin := "Origin: " + c.origin
		asked := s.do(t, request{Method: "OPTIONS", Path: "/workflow/api/v1/event", Headers: []string{origin, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization"}})
		status := map[bool]int{true: 200, false: 405}[c.allow != ""]
		assert.Equal(t, status, asked.Status, "%v", c)
		assert.Equal(t, c.allow, asked.Header.Get("Access-Control-Allow-Origin"), "%v", c)
		if c.allow != "" {
			assert.Equal(t, "POST", asked.Header.Get("Access-Control-Allow-Methods"))
			assert.Contains(t, asked.Header.Get("Access-Control-Allow-Headers"), "Authorization")
		}
		for _, a := range []answer{s.do(t, post("event", eventBody, origin)), s.do(t, request{Method: "POST", Path: "/workflow/api/v1/event", Body: eventBody, Headers: []string{origin}})} {
			assert.Equal(t, c.allow, a.Header.Get("Access-Control-Allow-Origin"), "%v: %d", c, a.Status)
			assert.Empty(t, a.Header.Get("Access-Control-Allow-Credentials"))
			assert.Equal(t, c.origins != nil, strings.HasSuffix(a.Header.Get("Vary"), ", Origin"), "%v: %s", c, a.Header.Get("Vary"))
		}
		cookie := []string{origin, "Cookie: session=" + sessionAnn, "Content-Type: application/json", "Sec-Fetch-Site: cross-site"}
		assert.Equal(t, 403, s.do(t, request{Method: "POST", Path: "/workflow/api/v1/event", Body: eventBody, Headers: cookie}).Status, "a cookie from another site")
		assert.Equal(t, 404, s.do(t, request{Method: "OPTIONS", Path: "/nowhere", Headers: []string{origin, "Access-Control-Request-Method: GET"}}).Status)
	}
	for origin, want := range map[string]string{
		"app.example.com":           "must be a scheme and a host, such as https://app.example.com",
		"https://app.example.com/":  "without a path: https://app.example.com",
		"https://App.example.com/x": "without a path: https://app.example.com",
		"ftp://app.example.com":     "must be a scheme and a host",
		"*":                         "must be the only one",
	} {
		assert.ErrorContains(t, CheckOrigins([]string{"https://one.example", origin}), want)
	}
}
