package clause

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/check"
)

var errLongURL = fmt.Errorf("longer than %d bytes", WebhookURLMax)

var errWebhookURL = errors.New("a webhook is http or https, with a host, and without user and #")

// What a webhook does that tells nothing else.
const (
	retryLimitDefault = 8
	RetryLimitMax     = 100
	retryDelayDefault = 5 * time.Second
	retryDelayMax     = time.Hour
	backoffDefault    = 2
	backoffMax        = 100
	WebhookURLMax     = 2048
)

// Webhooks reads the mapping of names to destinations.
func (b *Reader) Webhooks(n *document.Node) {
	if n == nil {
		return
	}
	if n.Kind != document.Mapping {
		b.Add(n, "must be a mapping of names")
		return
	}
	b.Definition.WebhookByName = map[string]*chart.Webhook{}
	for _, f := range n.Fields {
		if !expr.IsName(f.Key.Text) && !chart.IsIdentifier(f.Key.Text) {
			b.Add(f.Key, "%q is not a name of a webhook: letters, digits and . _ ~ -", data.Shorten(f.Key.Text))
			continue
		}
		if w := b.webhook(f); w != nil {
			b.Definition.WebhookByName[w.Name] = w
		}
	}
}

func (b *Reader) webhook(f document.Field) *chart.Webhook {
	w := &chart.Webhook{
		Name: f.Key.Text, Line: f.Key.Line, Retry: chart.Retry{RetryLimit: retryLimitDefault, Delay: retryDelayDefault, MaxDelay: retryDelayMax, Backoff: backoffDefault, Jitter: true},
	}
	if f.Value.Kind == document.Null { // the settings of the service have all of it
		return w
	}
	if !b.Mapping(f.Value, WebhookKeys) {
		return nil
	}
	if at := f.Value.Field("url"); at != nil {
		w.URL = b.Text(at)
		if err := CheckWebhookURL(w.URL); err != nil {
			b.Add(at, "%q: %v", data.Shorten(w.URL), err)
		}
	}
	w.OnDone = b.outcome(f.Value.Field("onDone"))
	w.OnError = b.outcome(f.Value.Field("onError"))
	b.retry(&w.Retry, f.Value.Field("retry"))
	return w
}

// retry reads when what has failed is tried again, over what holds without it.
func (b *Reader) retry(of *chart.Retry, r *document.Node) {
	if r == nil || !b.Mapping(r, RetryKeys) {
		return
	}
	if at := r.Field("limit"); at != nil {
		if i, ok := b.Int(at); ok && (i < 0 || i > RetryLimitMax) {
			b.Add(at, "must be 0 to %d", RetryLimitMax)
		} else {
			of.RetryLimit = int(i)
		}
	}
	if at := r.Field("delay"); at != nil {
		of.Delay = b.constantDelay(at)
	}
	if at := r.Field("maxDelay"); at != nil {
		of.MaxDelay = b.constantDelay(at)
	}
	if at := r.Field("backoff"); at != nil {
		v, err := at.Data()
		if of.Backoff = 0; err == nil && at.Kind == document.Number {
			of.Backoff = v.Float64()
		}
		if of.Backoff < 1 || of.Backoff > backoffMax {
			b.Add(at, "must be 1 to %d: how many times as long each pause is as the one before", backoffMax)
		}
	}
	if at := r.Field("jitter"); at != nil {
		of.Jitter = b.Bool(at)
	}
}

// CheckWebhookURL refuses what nothing can be sent to.
func CheckWebhookURL(text string) error {
	u, err := url.Parse(text)
	if err == nil && u.Port() != "" {
		_, err = strconv.ParseUint(u.Port(), 10, 16)
	}
	if len(text) > WebhookURLMax {
		return errLongURL
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return errWebhookURL
	}
	return nil
}

// outcome reads an event that tells the instance what happened to something.
func (b *Reader) outcome(n *document.Node) chart.EventName {
	if n == nil {
		return ""
	}
	name, ok := chart.ParseEventName(b.Text(n))
	if !ok || chart.IsReserved(name) {
		b.Add(n, "%q cannot be the event of an outcome", data.Shorten(n.Text))
		return ""
	}
	b.Raised = append(b.Raised, check.RaisedEvent{At: n, Name: name, ByAction: false})
	b.Definition.AddServiceEvent(name)
	return name
}
