// Package receiver is the program of cmd/receiver, which tests run as well.
package receiver

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-smtp"

	"troupe/actors/outbox"
)

type receiver struct {
	secret []byte
	status int

	mu     sync.Mutex
	out    io.Writer // guarded by mu, as is orders
	orders int
}

func (r *receiver) printf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = fmt.Fprintf(r.out, format, args...)
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, bodyMax))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var event struct {
		Source, Type string
		Data         json.RawMessage
	}
	signed := "the signature is wrong"
	switch {
	case r.isSigned(req.Header, body):
		signed = "the signature is right"
	case req.Header.Get("Webhook-Signature") == "":
		signed = "not signed"
	}
	if json.Unmarshal(body, &event) != nil || event.Data == nil {
		event.Data = body // no event of CloudEvents
	}
	r.printf("webhook %s, %s\n  id:   %s\n  type: %s\n  from: %s\n  data: %s\n",
		req.URL.Path, signed, req.Header.Get("Webhook-Id"), event.Type, event.Source, bytes.TrimSpace(event.Data))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	r.mu.Lock()
	r.orders++
	number := r.orders
	r.mu.Unlock()
	_, _ = fmt.Fprintf(w, `{"orderNumber":"A-%d"}`, number)
}

func (r *receiver) isSigned(h http.Header, body []byte) bool {
	sum := hmac.New(sha256.New, r.secret)
	_, _ = fmt.Fprintf(sum, "%s.%s.%s", h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), body)
	want := "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil))
	return slices.ContainsFunc(strings.Fields(h.Get("Webhook-Signature")), func(s string) bool { return hmac.Equal([]byte(s), []byte(want)) })
}

type mailbox struct{ *receiver }

func (m mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{of: m.receiver}, nil }

type session struct {
	of *receiver
	to []string
}

func (s *session) Mail(string, *smtp.MailOptions) error { s.to = nil; return nil }

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error { s.to = append(s.to, to); return nil }

func (s *session) Data(r io.Reader) error {
	m, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	body := m.Body
	if strings.EqualFold(m.Header.Get("Content-Transfer-Encoding"), "quoted-printable") {
		body = quotedprintable.NewReader(body)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		return err
	}
	s.of.printf("mail to %s\n  from:    %s\n  subject: %s\n  %s\n", strings.Join(s.to, ", "), m.Header.Get("From"), subject, strings.TrimSpace(string(text)))
	return nil
}

func (s *session) Reset() { s.to = nil }

// Logout implements smtp.Session.
func (*session) Logout() error { return nil }

const exampleSecret = "whsec_dGhpcyBpcyBhbiBleGFtcGxlLCBub3QgYSBzZWNyZXQ=" //nolint:gosec // everybody may know it

const bodyMax = 1 << 20

// Run is the program.
func Run(ctx context.Context, args []string, out, errs io.Writer) error {
	r := &receiver{out: out}
	flags := flag.NewFlagSet("receiver", flag.ContinueOnError)
	flags.SetOutput(errs)
	webhooks := flags.String("webhooks", "127.0.0.1:8090", "the address for webhooks")
	mails := flags.String("mails", "127.0.0.1:8025", "the address for mails")
	secret := flags.String("secret", exampleSecret, "the secret of webhooks; that of the example home without it")
	flags.IntVar(&r.status, "answer", http.StatusOK, "the status that webhooks are answered with")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || r.status < 200 || r.status > 599 {
		return errors.New("there are flags only, and a status is 200 to 599")
	}
	var err error
	if r.secret, err = outbox.ParseSecret(*secret); err != nil {
		return fmt.Errorf("--secret: %w", err)
	}
	forWebhooks, err := net.Listen("tcp", *webhooks)
	if err != nil {
		return err
	}
	forMails, err := net.Listen("tcp", *mails)
	if err != nil {
		return errors.Join(err, forWebhooks.Close())
	}
	return r.serve(ctx, forWebhooks, forMails)
}

func (r *receiver) serve(ctx context.Context, webhooks, mails net.Listener) error {
	web := &http.Server{Handler: r, ReadTimeout: time.Minute}
	mail := smtp.NewServer(mailbox{r})
	mail.Domain, mail.MaxMessageBytes, mail.MaxRecipients = "localhost", bodyMax, 100
	mail.ReadTimeout, mail.WriteTimeout = time.Minute, time.Minute
	ended := make(chan error, 2)
	go func() { ended <- web.Serve(webhooks) }()
	go func() { ended <- mail.Serve(mails) }()
	r.printf("webhooks at http://%s, mails at %s\n", webhooks.Addr(), mails.Addr())
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	return errors.Join(err, web.Close(), mail.Close())
}
