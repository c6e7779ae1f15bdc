// Package web exports to an HTTP endpoint: each batch of rows is a POST of lines of JSON (NDJSON), with the id, the
// signature and the guard of webhooks (package outbox). Only an answer of 2xx confirms it; a batch that is sent again
// has the same id.
package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"troupe/actors/export"
	"troupe/actors/outbox"
)

const (
	attemptMax = 30 * time.Second
	batchBytes = 1 << 20
	batchFor   = time.Second
)

// Options configures an Endpoint. URL is required.
type Options struct {
	URL    string         // http or https; its user and password are sent as the credential
	Secret []byte         // signs the requests; nil: nothing does
	Allow  []netip.Prefix // networks that are reached although they are private
}

// Endpoint is the target.
type Endpoint struct {
	url    *url.URL
	secret []byte
	client *http.Client
}

// New makes the client; it connects to nothing. An error is a fault of the options, and does not show the URL.
func New(o Options) (*Endpoint, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Fragment != "" {
		return nil, errors.New("the address must be like https://example.com/path")
	}
	return &Endpoint{url: u, secret: o.Secret, client: outbox.NewClient(o.Allow)}, nil
}

// Gathers implements export.Target.
func (*Endpoint) Gathers() export.Gathers { return export.Gathers{Bytes: batchBytes, For: batchFor} }

// String implements export.Target. A query may be a secret.
func (e *Endpoint) String() string { return e.url.Scheme + "://" + e.url.Host + e.url.EscapedPath() }

// Close implements export.Target.
func (e *Endpoint) Close() error {
	e.client.CloseIdleConnections()
	return nil
}

// Write implements export.Target.
func (e *Endpoint) Write(ctx context.Context, rows []export.Row) error {
	var body []byte
	for _, row := range rows {
		body = append(append(body, row.Text...), '\n')
	}
	ctx, cancel := context.WithTimeout(ctx, attemptMax)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url.String(), bytes.NewReader(body))
	if err != nil {
		return outbox.WithoutURL(err)
	}
	r.Header.Set("Content-Type", "application/x-ndjson")
	sum := sha256.Sum256(body)
	outbox.Sign(r, e.secret, hex.EncodeToString(sum[:16]), time.Now(), body)
	answer, err := e.client.Do(r)
	if err != nil {
		return outbox.WithoutURL(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("the answer was %d", answer.StatusCode)
	}
	_, _ = io.CopyN(io.Discard, answer.Body, outbox.AnswerBytesMax) // so that the connection is used again
	return nil
}
