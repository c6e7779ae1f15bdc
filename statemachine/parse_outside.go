package statemachine

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
)

// What a webhook does that says nothing else.
const (
	retryLimitDefault = 8
	retryLimitMax     = 100
	retryDelayDefault = 5 * time.Second
	retryDelayMax     = time.Hour
	backoffDefault    = 2
	backoffMax        = 100
	webhookURLMax     = 2048
)

// webhooks reads the mapping of names to destinations.
func (b *builder) webhooks(n *document.Node) {
	if n == nil {
		return
	}
	if n.Kind != document.Mapping {
		b.Add(n, "must be a mapping of names")
		return
	}
	b.d.WebhookByName = map[string]*Webhook{}
	for _, f := range n.Fields {
		if !expr.IsName(f.Key.Text) && !IsIdentifier(f.Key.Text) {
			b.Add(f.Key, "%q is not a name of a webhook: letters, digits and . _ ~ -", data.Shorten(f.Key.Text))
			continue
		}
		if w := b.webhook(f); w != nil {
			b.d.WebhookByName[w.Name] = w
		}
	}
}

func (b *builder) webhook(f document.Field) *Webhook {
	w := &Webhook{
		Name: f.Key.Text, Line: f.Key.Line, RetryLimit: retryLimitDefault, Delay: retryDelayDefault, MaxDelay: retryDelayMax, Backoff: backoffDefault, Jitter: true,
	}
	if f.Value.Kind == document.Null { // the settings of the service have all of it
		return w
	}
	if !b.known(f.Value, webhookKeys) {
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
	r := f.Value.Field("retry")
	if r == nil || !b.known(r, retryKeys) {
		return w
	}
	if at := r.Field("limit"); at != nil {
		if i, ok := b.Int(at); ok && (i < 0 || i > retryLimitMax) {
			b.Add(at, "must be 0 to %d", retryLimitMax)
		} else {
			w.RetryLimit = int(i)
		}
	}
	if at := r.Field("delay"); at != nil {
		w.Delay = b.constantDelay(at)
	}
	if at := r.Field("maxDelay"); at != nil {
		w.MaxDelay = b.constantDelay(at)
	}
	if at := r.Field("backoff"); at != nil {
		v, err := at.Data()
		if w.Backoff = 0; err == nil && at.Kind == document.Number {
			w.Backoff = v.Float64()
		}
		if w.Backoff < 1 || w.Backoff > backoffMax {
			b.Add(at, "must be 1 to %d: how many times as long each pause is as the one before", backoffMax)
		}
	}
	if at := r.Field("jitter"); at != nil {
		w.Jitter = b.Bool(at)
	}
	return w
}

// CheckWebhookURL refuses what nothing can be sent to.
func CheckWebhookURL(text string) error {
	u, err := url.Parse(text)
	if err == nil && u.Port() != "" {
		_, err = strconv.ParseUint(u.Port(), 10, 16)
	}
	if len(text) > webhookURLMax {
		return errLongURL
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return errWebhookURL
	}
	return nil
}

// outcome reads an event that tells the instance what became of something.
func (b *builder) outcome(n *document.Node) EventName {
	if n == nil {
		return ""
	}
	name, ok := ParseEventName(b.Text(n))
	if !ok || IsReserved(name) {
		b.Add(n, "%q cannot be the event of an outcome", data.Shorten(n.Text))
		return ""
	}
	b.raised = append(b.raised, raisedEvent{n, name, false})
	b.d.AddServiceEvent(name)
	return name
}

// sendOut reads {to, body}.
func (b *builder) sendOut(n *document.Node) chart.Action {
	a := &chart.SendOut{}
	if !b.known(n, sendOutKeys) {
		return a
	}
	to := n.Field("to")
	if to == nil {
		b.Add(n, "webhook needs \"to\"")
		return a
	}
	a.To = b.Text(to)
	b.webhooked = append(b.webhooked, to)
	if v := n.Field("body"); v != nil {
		a.Body = b.template(v)
	}
	return a
}

// checkWebhooks holds that every action names a webhook that there is.
func (b *builder) checkWebhooks() {
	var names []string
	for name := range b.d.WebhookByName {
		names = append(names, name)
	}
	for _, at := range b.webhooked {
		if !slices.Contains(names, at.Text) {
			b.suggest(at, at.Text, names, "unknown webhook %q", data.Shorten(at.Text))
		}
	}
}

// sendMail reads {to, subject, body}.
func (b *builder) sendMail(n *document.Node) chart.Action {
	a := &chart.SendMail{}
	if !b.known(n, mailKeys) {
		return a
	}
	for _, key := range mailKeys {
		if n.Field(key) == nil {
			b.Add(n, "mail needs %q", key)
			return a
		}
	}
	a.To = b.template(n.Field("to"))
	if a.To != nil && a.To.Constant != nil {
		to, err := chart.Addressees(a.To.Constant)
		if err != nil {
			b.Add(n.Field("to"), "%v", err)
		}
		for _, addressee := range to {
			if !strings.Contains(addressee, "@") {
				b.d.Addressees = chart.AddReference(b.d.Addressees, addressee, n.Field("to").Line)
			}
			if role, ok := strings.CutPrefix(addressee, "role:"); ok && b.parser.options.HasRole != nil && !b.parser.options.HasRole(role) {
				b.suggest(n.Field("to"), role, b.parser.options.Roles, "unknown role %q", data.Shorten(role))
			}
		}
	}
	a.Subject, a.Body = b.prose(n.Field("subject")), b.prose(n.Field("body"))
	b.d.MailLine = cmp.Or(b.d.MailLine, n.Line)
	return a
}

// prose reads a text for people, which may have ${…} anywhere.
func (b *builder) prose(n *document.Node) *chart.Prose {
	p := &chart.Prose{}
	parts, isExpression := SplitText(b.Text(n))
	for i, part := range parts {
		if !isExpression[i] {
			p.Parts = append(p.Parts, chart.ProsePart{Literal: part})
			continue
		}
		program, err := b.compile(n, part, b.env().Compile)
		if err != nil && b.parser.options.Stored { // it was no expression when it was accepted
			p.Parts = append(p.Parts, chart.ProsePart{Literal: "${" + part + "}"})
			continue
		}
		if program = b.compiled(n, program, err); program != nil {
			p.Parts = append(p.Parts, chart.ProsePart{Program: program})
		}
	}
	return p
}
