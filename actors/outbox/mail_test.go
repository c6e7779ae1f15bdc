package outbox

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	netmail "net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mailServer is a server that takes mails, or says what refuse says.
type mailServer struct {
	mu       sync.Mutex
	got      []taken
	refuse   func(to string) error
	login    string // "": nobody has to sign in
	stall    bool   // it takes a mail, but says nothing any more
	finished chan struct{}
}

type taken struct {
	from   string
	to     []string
	secure bool
	user   string
	text   string
}

func (s *mailServer) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &mailSession{of: s, conn: c}, nil
}

type mailSession struct {
	of   *mailServer
	conn *smtp.Conn
	now  taken
}

func (s *mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }
func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user+":"+password != s.of.login {
			return smtp.ErrAuthFailed
		}
		s.now.user = user
		return nil
	}), nil
}

func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	if s.of.login != "" && s.now.user == "" {
		return smtp.ErrAuthRequired
	}
	_, s.now.secure = s.conn.TLSConnectionState()
	s.now.from, s.now.to = from, nil
	return nil
}

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.now.to = append(s.now.to, to)
	if s.of.refuse != nil {
		return s.of.refuse(to)
	}
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	s.now.text = string(text)
	s.of.mu.Lock()
	s.of.got = append(s.of.got, s.now)
	s.of.mu.Unlock()
	if s.of.stall {
		<-s.of.finished
	}
	return err
}

func (*mailSession) Reset()        {}
func (*mailSession) Logout() error { return nil }

// startMail starts a server for mails, with TLS for the name "mail.example.com" unless it is plain.
func startMail(t *testing.T, backend *mailServer, plain bool) MailOptions {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	backend.finished = make(chan struct{})
	s := smtp.NewServer(backend)
	s.Domain, s.AllowInsecureAuth, s.ErrorLog = "mail.example.com", true, discard{}
	pool := x509.NewCertPool()
	if !plain {
		secure := httptest.NewTLSServer(nil) // NB: whose certificate is for example.com and all below it
		secure.Close()
		pool.AddCert(secure.Certificate())
		s.TLSConfig = &tls.Config{Certificates: secure.TLS.Certificates, MinVersion: tls.VersionTLS12}
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(listener) }()
	t.Cleanup(func() { close(backend.finished); _ = listener.Close(); _ = s.Close(); <-served })
	return MailOptions{
		Host: "mail.example.com", Port: 25, From: "Troupe <troupe@example.org>", Clock: time.Now, AttemptMax: 10 * time.Second,
		TLS: &tls.Config{RootCAs: pool, ServerName: "mail.example.com", MinVersion: tls.VersionTLS12},
		Addresses: func(addressee string) []string {
			return map[string][]string{"user:ann": {"ann@example.org"}, "role:heads": {"ann@example.org", "bob@example.org"}}[addressee]
		},
		dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, listener.Addr().String())
		},
	}
}

type discard struct{}

func (discard) Printf(string, ...any) {}
func (discard) Println(...any)        {}

func mailTo(to ...string) Attempt {
	return Attempt{ID: "01X-3-0", Queue: MailQueue, Delivery: &Delivery{
		Workflow: "leave", Created: time.Unix(1_800_000_000, 0), To: to, Subject: "Größe: 3", Text: "Hello,\n.\nÄpfel ${x}\n",
	}}
}

func send(t *testing.T, o MailOptions, a Attempt) Answer {
	t.Helper()
	m, err := NewMails(o)
	require.NoError(t, err)
	return Senders{Mails: m}.Send(t.Context(), a)
}

func TestAMail(t *testing.T) {
	s := &mailServer{login: "troupe:secret"}
	o := startMail(t, s, false)
	o.User, o.Password = "troupe", "secret"
	require.NoError(t, send(t, o, mailTo("role:heads", "user:ann", "carl@example.net", "user:nobody")).Err)
	require.Len(t, s.got, 1, "mails came")
	got := s.got[0]
	to := strings.Join(got.to, " ")
	assert.True(t, got.from == "troupe@example.org" && to == "ann@example.org bob@example.org carl@example.net" && got.secure && got.user == "troupe", "got %+v", got)
	m, err := netmail.ReadMessage(strings.NewReader(got.text))
	require.NoError(t, err)
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	assert.True(t, err == nil && subject == "Größe: 3", "subject %q, %v", subject, err)
	for name, want := range map[string]string{
		"From": `"Troupe" <troupe@example.org>`, "To": "<ann@example.org>, <bob@example.org>, <carl@example.net>",
		"Message-Id": "<01X-3-0@example.org>", "Auto-Submitted": "auto-generated", "Content-Type": "text/plain; charset=UTF-8",
	} {
		assert.Equal(t, want, m.Header.Get(name), name)
	}
	at, err := m.Header.Date()
	assert.True(t, err == nil && at.Unix() == 1_800_000_000, "date %v, %v", at, err)
	text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if got := strings.ReplaceAll(string(text), "\r\n", "\n"); err != nil || strings.TrimSpace(got) != "Hello,\n.\nÄpfel ${x}" {
		t.Errorf("text %q, %v", got, err)
	}
}

func TestMailsThatAreNotTaken(t *testing.T) {
	refusing := func(code int) func(string) error {
		return func(string) error {
			return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 1, 1}, Message: "no such mailbox"}
		}
	}
	for what, c := range map[string]struct {
		server *mailServer
		plain  bool
		change func(*MailOptions)
		to     string
		want   string
		status int
		final  bool
	}{
		"nobody":          {to: "user:nobody", want: "identity.yaml", final: true},
		"unknown mailbox": {server: &mailServer{refuse: refusing(550)}, want: "no such mailbox", status: 550, final: true},
		"full mailbox":    {server: &mailServer{refuse: refusing(452)}, want: "no such mailbox", status: 452},
		"no STARTTLS":     {plain: true, want: "STARTTLS"},
		"another authority": {change: func(o *MailOptions) {
			o.TLS = &tls.Config{ServerName: "mail.example.com", MinVersion: tls.VersionTLS12}
		}, want: "unknown authority"},
		"a wrong password": {server: &mailServer{login: "troupe:secret"}, change: func(o *MailOptions) { o.User, o.Password = "troupe", "x" }, want: "535"},
		"nobody there": {change: func(o *MailOptions) {
			o.dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }
		}, want: "refused"},
		"a server that hangs": {server: &mailServer{stall: true}, change: func(o *MailOptions) { o.AttemptMax = 300 * time.Millisecond }, want: ""},
	} {
		t.Run(what, func(t *testing.T) {
			if c.server == nil {
				c.server = &mailServer{}
			}
			o := startMail(t, c.server, c.plain)
			if c.change != nil {
				c.change(&o)
			}
			if c.to == "" {
				c.to = "user:ann"
			}
			a := send(t, o, mailTo(c.to))
			assert.True(t, a.Err != nil && strings.Contains(a.Err.Error(), c.want) && a.Status == c.status && a.Final == c.final,
				"got %+v, want %q, %d, final %v", a, c.want, c.status, c.final)
		})
	}
}

// TestAServerOnTheSameMachine may do without TLS.
func TestAServerOnTheSameMachine(t *testing.T) {
	s := &mailServer{}
	o := startMail(t, s, true)
	o.Host = "localhost"
	a := send(t, o, mailTo("user:ann"))
	assert.True(t, a.Err == nil && len(s.got) == 1 && !s.got[0].secure, "got %+v, %+v", a, s.got)
}

// TestAServerWhoseLineHasNoEnd: the library would keep all of it.
func TestAServerWhoseLineHasNoEnd(t *testing.T) {
	listening, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listening.Close() }()
	go func() {
		conn, err := listening.Accept()
		for err == nil {
			_, err = conn.Write(make([]byte, 1<<16))
		}
	}()
	m, err := NewMails(MailOptions{
		Host: "127.0.0.1", Port: listening.Addr().(*net.TCPAddr).Port, From: "a@example.org", AttemptMax: time.Minute, Clock: time.Now,
		Addresses: func(string) []string { return []string{"ann@example.org"} },
	})
	require.NoError(t, err)
	a := m.Send(t.Context(), mailTo("user:ann"))
	assert.True(t, a.Err != nil && strings.Contains(a.Err.Error(), errTalksTooMuch.Error()), "got %+v", a)
}

func TestWithoutAServer(t *testing.T) {
	a := (Senders{}).Send(t.Context(), mailTo("user:ann"))
	assert.True(t, a.Final && strings.Contains(a.Err.Error(), "mail.host"), "got %+v", a)
	for _, from := range []string{"", "x", "a@b, c@d"} {
		_, err := NewMails(MailOptions{Host: "localhost", From: from})
		assert.Error(t, err, "%q is taken as a sender", from)
	}
}
