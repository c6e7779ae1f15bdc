package nats

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/export"
)

func start(t *testing.T, o *server.Options) *server.Server {
	o.Host, o.JetStream, o.NoLog, o.NoSigs = "127.0.0.1", true, true, true
	s, err := server.NewServer(o)
	require.NoError(t, err)
	s.Start()
	require.True(t, s.ReadyForConnections(time.Minute))
	return s
}

// TestAStopEndsConnecting to a server that accepts and then says nothing.
func TestAStopEndsConnecting(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = silent.Close() }()
	subject, err := New(Options{To: "nats://" + silent.Addr().String() + "/rows"})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		if conn, err := silent.Accept(); err == nil {
			defer func() { _ = conn.Close() }()
			stop()
			_, _ = io.Copy(io.Discard, conn) // until the other side has gone
		}
	}()
	assert.ErrorIs(t, subject.Write(ctx, nil), context.Canceled)
}

// TestRowsAreAcknowledged: over a server that is killed amid a batch, each row is there once, those of an instance in their order; TLS and
// the password are needed where the server wants them, and what is wrong is said.
func TestRowsAreAcknowledged(t *testing.T) {
	keys := httptest.NewTLSServer(nil) // has a certificate for 127.0.0.1
	defer keys.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(keys.Certificate())
	o := server.Options{Port: -1, StoreDir: t.TempDir(), Username: "ann", Password: "hidden", TLSConfig: &tls.Config{Certificates: keys.TLS.Certificates}}
	s := start(t, &o)
	address := s.Addr().String()
	_, port, _ := strings.Cut(address, ":")
	_, err := fmt.Sscan(port, &o.Port) // the next one has the same
	require.NoError(t, err)

	options := Options{To: "tls://" + address + "/rows.of.troupe", User: "ann", Password: "hidden", Authorities: trusted}
	subject, err := New(options)
	require.NoError(t, err)
	assert.Equal(t, options.To, subject.String())
	var rows []export.Row
	const instances, entries = 3, 20
	for n := range instances * entries {
		id := fmt.Sprint("i", n%instances)
		rows = append(rows, export.Row{Instance: id, Text: fmt.Appendf(nil, `{%q:%d}`, id, n/instances)})
	}
	require.ErrorContains(t, subject.Write(t.Context(), rows[:1]), "no stream keeps the subject rows.of.troupe")

	connect := func() (*nats.Conn, jetstream.JetStream) {
		conn, err := nats.Connect("tls://"+address, nats.UserInfo("ann", "hidden"), nats.Secure(&tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}))
		require.NoError(t, err)
		js, err := jetstream.New(conn)
		require.NoError(t, err)
		return conn, js
	}
	conn, js := connect()
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "rows", Subjects: []string{"rows.>"}})
	require.NoError(t, err)
	conn.Close()
	require.NoError(t, subject.Write(t.Context(), rows[:30]))
	s.Shutdown()
	s.WaitForShutdown()
	require.Error(t, subject.Write(t.Context(), rows[15:]))
	s = start(t, &o)
	defer s.WaitForShutdown()
	defer s.Shutdown()
	require.NoError(t, subject.Write(t.Context(), rows[15:])) // half of it is there
	require.NoError(t, subject.Close())

	conn, js = connect()
	defer conn.Close()
	stream, err := js.Stream(t.Context(), "rows")
	require.NoError(t, err)
	assert.Equal(t, uint64(len(rows)), stream.CachedInfo().State.Msgs)
	for n, row := range rows {
		m, err := stream.GetMsg(t.Context(), uint64(n+1))
		require.NoError(t, err)
		assert.Equal(t, "rows.of.troupe "+row.Text.String(), m.Subject+" "+string(m.Data))
	}

	for name, change := range map[string]func(*Options){
		"the password":    func(o *Options) { o.Password = "wrong" },
		"the certificate": func(o *Options) { o.Authorities = x509.NewCertPool() },
	} {
		wrong := options
		change(&wrong)
		subject, err := New(wrong)
		require.NoError(t, err)
		err = subject.Write(t.Context(), rows)
		assert.True(t, err != nil && !strings.Contains(err.Error(), wrong.Password), "%s: %v", name, err)
	}
	for _, wrong := range []string{"nats://", "nats://one:4222", "nats://one:4222/", "nats://a:secret@one:4222/t", "nats://one/a..b", "nats://one/a.*", "http://one/t"} {
		_, err := New(Options{To: wrong})
		assert.True(t, err != nil && !strings.Contains(err.Error(), "secret"), wrong)
	}
}
