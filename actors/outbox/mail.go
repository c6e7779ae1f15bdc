package outbox

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"slices"
	"strings"
	"time"

	"github.com/wneessen/go-mail"
)

// MailOptions configures Mails. Host and From must be set.
type MailOptions struct {
	// Host and Port are the server that takes the mails. Port 0: 587, or 465 with ImplicitTLS.
	Host string
	Port int
	// User and Password sign in there; without a User nobody does.
	User, Password string
	From           string // who sends: an address, or a name with one
	ImplicitTLS    bool   // ImplicitTLS speaks TLS from the first byte
	// Addresses returns the addresses of an addressee "user:NAME" or "role:NAME"; none when nobody has one.
	Addresses func(addressee string) []string
	// AttemptMax bounds an attempt, the wait for the server's turn not counted. Zero is 10 s.
	AttemptMax time.Duration
	Clock      func() time.Time
	dial       func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS says whom to believe to be the server; nil: whom the system knows.
	TLS *tls.Config
}

// Mails sends mails to one server.
type Mails struct {
	o       MailOptions
	options []mail.Option
	hosts   *hosts
}

var errMail = errors.New("the settings of mail")

// NewMails returns a sender of mails. It connects nowhere.
func NewMails(o MailOptions) (*Mails, error) {
	o.AttemptMax = cmp.Or(o.AttemptMax, 10*time.Second)
	if _, err := netmail.ParseAddress(o.From); err != nil {
		return nil, fmt.Errorf("%w: from is not an address: %w", errMail, err)
	}
	options := []mail.Option{mail.WithTimeout(o.AttemptMax)}
	switch {
	case o.ImplicitTLS:
		options = append(options, mail.WithSSL(), mail.WithPort(cmp.Or(o.Port, mail.DefaultPortSSL)))
	case isLoopback(o.Host):
		options = append(options, mail.WithTLSPolicy(mail.TLSOpportunistic), mail.WithPort(cmp.Or(o.Port, mail.DefaultPortTLS)))
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory), mail.WithPort(cmp.Or(o.Port, mail.DefaultPortTLS)))
	}
	if o.TLS != nil {
		options = append(options, mail.WithTLSConfig(o.TLS))
	}
	if o.User != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(o.User), mail.WithPassword(o.Password))
	}
	m := &Mails{o: o, options: options, hosts: newHosts(o.Clock)}
	if _, err := m.client(context.Background()); err != nil {
		return nil, fmt.Errorf("%w: %w", errMail, err)
	}
	return m, nil
}

// NB: the context that it dials with ends behind the dialling.
func (m *Mails) client(ctx context.Context) (*mail.Client, error) {
	dial := func(dialling context.Context, network, address string) (net.Conn, error) {
		dial := m.o.dial
		if dial == nil {
			dial = new(net.Dialer).DialContext
		}
		conn, err := dial(dialling, network, address)
		if err == nil {
			context.AfterFunc(ctx, func() { _ = conn.Close() })
			conn = &bounded{Conn: conn, left: answersMax}
		}
		return conn, err
	}
	return mail.NewClient(m.o.Host, append(slices.Clip(m.options), mail.WithDialContextFunc(dial))...)
}

// answersMax bounds what a server may say in an attempt: its lines have no end that the library would look for.
const answersMax = 1 << 20

type bounded struct {
	net.Conn
	left int
}

var errTalksTooMuch = errors.New("the server says more than 1 MiB")

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTalksTooMuch
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// URL implements Sender.
func (*Mails) URL(Attempt) string { return "" }

// Send implements Sender.
func (m *Mails) Send(ctx context.Context, a Attempt) Answer {
	msg, err := m.message(a)
	if err != nil {
		return Answer{Err: err, Final: true}
	}
	release, err := m.hosts.acquire(ctx, m.o.Host)
	if err != nil {
		return Answer{Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, m.o.AttemptMax)
	defer cancel()
	client, err := m.client(ctx)
	if err != nil {
		release(true)
		return Answer{Err: err, Final: true}
	}
	conn, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		release(false)
		return Answer{Err: err}
	}
	err = client.SendWithSMTPClient(conn, msg)
	_ = client.CloseWithSMTPClient(conn) // the mail is taken, or it is not
	answer := answerOf(err)
	release(answer.Err == nil || answer.Status != 0)
	return answer
}

func answerOf(err error) Answer {
	var said *mail.SendError
	if !errors.As(err, &said) {
		return Answer{Err: err}
	}
	if said.Reason == mail.ErrSMTPReset { // behind the mail, which was taken
		return Answer{}
	}
	return Answer{Status: said.ErrorCode(), Err: err, Final: !said.IsTemp() && said.ErrorCode() >= 500}
}

func (m *Mails) message(a Attempt) (*mail.Msg, error) {
	msg := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := msg.From(m.o.From); err != nil {
		return nil, err
	}
	to := m.addresses(a.To)
	if len(to) == 0 {
		return nil, fmt.Errorf("nobody of %s has an email in identity.yaml", strings.Join(a.To, ", "))
	}
	if err := msg.To(to...); err != nil {
		return nil, err
	}
	from, _ := netmail.ParseAddress(m.o.From) // NewMails has looked at it
	_, domain, _ := strings.Cut(from.Address, "@")
	msg.SetMessageIDWithValue(a.ID + "@" + domain)
	msg.SetDateWithValue(a.Created)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: nobody answers it by itself
	msg.Subject(a.Subject)
	msg.SetBodyString(mail.TypeTextPlain, a.Text)
	return msg, nil
}

func (m *Mails) addresses(to []string) (out []string) {
	seen := map[string]bool{}
	for _, addressee := range to {
		found := []string{addressee}
		if strings.HasPrefix(addressee, "user:") || strings.HasPrefix(addressee, "role:") {
			found = m.o.Addresses(addressee)
		}
		for _, address := range found {
			if !seen[address] {
				seen[address] = true
				out = append(out, address)
			}
		}
	}
	return out
}

// Senders sends to webhooks and as mails.
type Senders struct {
	Webhooks *Webhooks
	Mails    *Mails // nil: there is no server for them
}

// Send implements Sender.
func (s Senders) Send(ctx context.Context, a Attempt) Answer {
	switch {
	case a.Queue != MailQueue:
		return s.Webhooks.Send(ctx, a)
	case s.Mails == nil:
		return Answer{Err: errors.New("no mail server is set: mail.host"), Final: true}
	}
	return s.Mails.Send(ctx, a)
}

// URL implements Sender.
func (s Senders) URL(a Attempt) string {
	if a.Queue == MailQueue {
		return ""
	}
	return s.Webhooks.URL(a)
}
