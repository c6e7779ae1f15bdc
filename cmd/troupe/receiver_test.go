package receiver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/outbox"
)

// TestWebhooks: what is signed with another secret, or is no event, is shown and answered all the same. That one from the service is signed
// is a part of the tour (cmd/troupe/TOUR.md, "Automation").
func TestWebhooks(t *testing.T) {
	secret, err := outbox.ParseSecret(exampleSecret)
	require.NoError(t, err)
	var out bytes.Buffer
	r := &receiver{out: &out, secret: secret, status: http.StatusInternalServerError}
	for body, want := range map[string]string{
		`{"type":"a.b","data":{"n":1}}`: "webhook /x, the signature is wrong\n  id:   1\n  type: a.b\n  from: \n  data: {\"n\":1}\n",
		"no JSON":                       "webhook /x, the signature is wrong\n  id:   1\n  type: \n  from: \n  data: no JSON\n",
	} {
		out.Reset()
		req := httptest.NewRequest(http.MethodPost, "/x", strings.NewReader(body))
		req.Header.Set("Webhook-Id", "1")
		req.Header.Set("Webhook-Signature", "v1,AAAA")
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		assert.True(t, w.Code == http.StatusInternalServerError && out.String() == want, "%s: got %d and %q, want %q", body, w.Code, out.String(), want)
	}
}

func TestMails(t *testing.T) {
	var out bytes.Buffer
	s := &session{of: &receiver{out: &out}}
	require.NoError(t, errors.Join(s.Mail("a@example.org", nil), s.Rcpt("b@example.org", nil), s.Rcpt("c@example.org", nil)))
	const text = "From: a@example.org\r\nSubject: =?utf-8?q?caf=C3=A9?=\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=C3=A4 and=\r\n more\r\n"
	require.NoError(t, s.Data(strings.NewReader(text)))
	const want = "mail to b@example.org, c@example.org\n  from:    a@example.org\n  subject: café\n  ä and more\n"
	assert.Equal(t, want, out.String())
	assert.Error(t, s.Data(strings.NewReader("nothing")), "what is no mail is taken")
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"--answer", "99"}, {"--secret", "whsec_x"}, {"--none"}} {
		assert.Error(t, Run(context.Background(), args, io.Discard, io.Discard), args)
	}
}
