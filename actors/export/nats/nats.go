// Package nats exports to a subject of NATS that a stream of JetStream keeps: a message for each row, with an id by which the
// stream drops it when it comes once more. A row counts when the stream has acknowledged it, and the next one of the same
// instance is sent only then, so they are in their order whatever is lost on the way.
package nats

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"troupe/actors/export"
)

const (
	batchBytes = 1 << 20
	batchFor   = time.Second
	writeMax   = time.Minute // how long a batch may take
	connectMax = 10 * time.Second
)

// The schemes of addresses; the second one's servers speak TLS.
const (
	Scheme    = "nats"
	SchemeTLS = "tls"
)

// Options configures a Subject. To is required.
type Options struct {
	To             string         // nats://HOST:PORT,HOST:PORT/SUBJECT, or tls://
	User, Password string         // empty: nobody signs in
	Authorities    *x509.CertPool // sign the certificates of servers; nil: those of the system
}

// Subject is the target.
type Subject struct {
	name, servers, subject string
	options                []nats.Option

	// Of the connection that is open; nil: none is.
	conn   *nats.Conn
	stream jetstream.JetStream
	closed chan struct{}
}

// New makes the target; it connects to nothing. An error is a fault of the options, and does not show the address.
func New(o Options) (*Subject, error) {
	scheme, rest, _ := strings.Cut(o.To, "://")
	hosts, subject, _ := strings.Cut(rest, "/")
	if scheme != Scheme && scheme != SchemeTLS || hosts == "" || strings.Contains(hosts, "@") || !isSubject(subject) {
		return nil, errors.New("the address must be like nats://one:4222,two:4222/subject, without a user")
	}
	s := &Subject{name: o.To, subject: subject, servers: scheme + "://" + strings.ReplaceAll(hosts, ",", ","+scheme+"://")}
	s.options = []nats.Option{nats.Name("troupe"), nats.NoReconnect(), nats.Timeout(connectMax), nats.SkipHostLookup()} // NB: the dialer looks it up, with a context
	if scheme == SchemeTLS {
		s.options = append(s.options, nats.Secure(&tls.Config{RootCAs: o.Authorities, MinVersion: tls.VersionTLS12}))
	}
	if o.User != "" {
		s.options = append(s.options, nats.UserInfo(o.User, o.Password))
	}
	return s, nil
}

// isSubject says that a message can be sent to it.
func isSubject(s string) bool {
	return !strings.ContainsAny(s, "*>/?#@ \t\r\n") && !strings.Contains("."+s+".", "..")
}

// Gathers implements export.Target.
func (*Subject) Gathers() export.Gathers { return export.Gathers{Bytes: batchBytes, For: batchFor} }

// String implements export.Target.
func (s *Subject) String() string { return s.name }

// Close implements export.Target.
func (s *Subject) Close() error {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
	return nil
}

// Write implements export.Target. After an error it connects again, so that nothing of it arrives later.
func (s *Subject) Write(ctx context.Context, rows []export.Row) (err error) {
	ctx, cancel := context.WithTimeout(ctx, writeMax)
	defer cancel()
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	if s.conn == nil || s.conn.IsClosed() {
		if err := s.connect(ctx); err != nil {
			return err
		}
	}
	var sent []jetstream.PubAckFuture
	of := map[string]bool{} // the instances of which something was sent
	for _, row := range rows {
		if of[row.Instance] {
			if err := s.await(ctx, sent); err != nil {
				return err
			}
			sent = sent[:0]
			clear(of)
		}
		sum := sha256.Sum256(row.Text)
		future, err := s.stream.PublishMsgAsync(&nats.Msg{Subject: s.subject, Data: row.Text}, jetstream.WithMsgID(hex.EncodeToString(sum[:16])))
		if err != nil {
			return err
		}
		sent, of[row.Instance] = append(sent, future), true
	}
	return s.await(ctx, sent)
}

func (s *Subject) connect(ctx context.Context) error {
	closed, d := make(chan struct{}), &dialer{ctx: ctx}
	conn, err := nats.Connect(s.servers, append(s.options, nats.SetCustomDialer(d), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))...)
	if d.stop != nil {
		d.stop()
	}
	if ctx.Err() != nil {
		if conn != nil {
			conn.Close()
		}
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	stream, err := jetstream.New(conn, jetstream.WithPublishAsyncTimeout(writeMax))
	if err != nil {
		conn.Close()
		return err
	}
	s.conn, s.stream, s.closed = conn, stream, closed
	return nil
}

// dialer implements nats.CustomDialer for one connect, which takes no context: when that ends, so do the dial and the
// handshake behind it.
type dialer struct {
	ctx  context.Context //nolint:containedctx // of the connect
	stop func() bool     // has the newest connection outlive the context; nil: there is none
}

func (d *dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: connectMax}).DialContext(d.ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.stop = context.AfterFunc(d.ctx, func() { _ = conn.Close() })
	return conn, nil
}

// await waits until all of them are acknowledged.
func (s *Subject) await(ctx context.Context, sent []jetstream.PubAckFuture) error {
	for _, future := range sent {
		select {
		case <-future.Ok():
		case err := <-future.Err():
			if errors.Is(err, jetstream.ErrNoStreamResponse) {
				err = fmt.Errorf("no stream keeps the subject %s: %w", s.subject, err)
			}
			return err
		case <-s.closed:
			return fmt.Errorf("the connection is lost: %w", errors.Join(s.conn.LastError(), nats.ErrConnectionClosed))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
