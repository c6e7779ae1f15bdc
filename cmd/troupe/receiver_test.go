package main

import (
	"context"
	"io"
	"net/http"
	"net/smtp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/receiver"
)

// TestReceiver: a webhook that is signed with another secret, or is no event, is shown and answered all the same. That one from the service
// is signed is a part of the tour (cmd/troupe/TOUR.md, "Automation").
func TestReceiver(t *testing.T) {
	webhooks, mails, shown := startReceiver(t, "-answer", "500")
	for _, body := range []string{`{"type":"a.b","data":{"n":1}}`, "no JSON"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, webhooks+"/x", strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Webhook-Id", "1")
		req.Header.Set("Webhook-Signature", "v1,AAAA")
		res, err := new(http.Client).Do(req)
		require.NoError(t, err)
		assert.Equal(t, http.StatusInternalServerError, res.StatusCode)
		require.NoError(t, res.Body.Close())
	}
	send := func(text string) error {
		return smtp.SendMail(mails, nil, "a@example.org", []string{"b@example.org", "c@example.org"}, []byte(text))
	}
	const text = "From: a@example.org\r\nSubject: =?utf-8?q?caf=C3=A9?=\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=C3=A4 and=\r\n more\r\n"
	require.NoError(t, send(text))
	assert.Error(t, send("nothing"), "what is no mail is taken")
	const want = "webhook /x, the signature is wrong\n  id:   1\n  type: a.b\n  from: \n  data: {\"n\":1}\n" +
		"webhook /x, the signature is wrong\n  id:   1\n  type: \n  from: \n  data: no JSON\n" +
		"mail to b@example.org, c@example.org\n  from:    a@example.org\n  subject: café\n  ä and more\n"
	assert.Equal(t, want, shown())
	for _, args := range [][]string{{"x"}, {"--answer", "99"}, {"--secret", "whsec_x"}, {"--none"}} {
		assert.Error(t, receiver.Run(context.Background(), args, io.Discard, io.Discard), args)
	}
}
