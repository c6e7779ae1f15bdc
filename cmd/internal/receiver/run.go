// Package receiver is the program of cmd/receiver, which tests run as well.
package receiver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/emersion/go-smtp"

	"troupe/actors/outbox"
	"troupe/bench/process"
)

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
		return fmt.Errorf("%w: %w", process.ErrUsage, err)
	}
	if flags.NArg() > 0 || r.status < 200 || r.status > 599 {
		return fmt.Errorf("%w: there are flags only, and a status is 200 to 599", process.ErrUsage)
	}
	var err error
	if r.secret, err = outbox.ParseSecret(*secret); err != nil {
		return fmt.Errorf("%w: --secret: %w", process.ErrUsage, err)
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
