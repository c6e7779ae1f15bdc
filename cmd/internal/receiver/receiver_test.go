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

	"troupe/actors/outbox"
	"troupe/bench/process"
)

// TestWebhooks: what is signed with another secret, or is no event, is shown and answered all the same. That one from the service is signed
// is a part of the tour (cmd/troupe/TOUR.md, "Automation").
func TestWebhooks(t *testing.T) {
	secret, err := outbox.ParseSecret(exampleSecret)
	if err != nil {
		t.Fatal(err)
	}
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
		if w.Code != http.StatusInternalServerError || out.String() != want {
			t.Errorf("%s: got %d and %q, want %q", body, w.Code, out.String(), want)
		}
	}
}

func TestMails(t *testing.T) {
	var out bytes.Buffer
	s := &session{of: &receiver{out: &out}}
	if err := errors.Join(s.Mail("a@example.org", nil), s.Rcpt("b@example.org", nil), s.Rcpt("c@example.org", nil)); err != nil {
		t.Fatal(err)
	}
	const text = "From: a@example.org\r\nSubject: =?utf-8?q?caf=C3=A9?=\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=C3=A4 and=\r\n more\r\n"
	if err := s.Data(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	const want = "mail to b@example.org, c@example.org\n  from:    a@example.org\n  subject: café\n  ä and more\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	if s.Data(strings.NewReader("nothing")) == nil {
		t.Error("what is no mail is taken")
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"--answer", "99"}, {"--secret", "whsec_x"}, {"--none"}} {
		if err := Run(context.Background(), args, io.Discard, io.Discard); !errors.Is(err, process.ErrUsage) {
			t.Errorf("%q: got %v", args, err)
		}
	}
}
