package statemachine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"slices"
	"strings"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// Bounds of what one event sends out (statemachine/DEFINITION.md, "Bounds of one event").
const (
	maxOut      = 100
	maxOutBytes = 1 << 20
	maxMailTo   = 100 // addressees of one mail
)

var (
	errTooManyOut error = executionError{reason: fmt.Sprintf("more than %d deliveries", maxOut)}
	errOutLarge   error = executionError{reason: fmt.Sprintf("deliveries with more than %d MiB", maxOutBytes>>20)}
)

// Out is what an event sends out of the instance: to a webhook, or as a mail. It leaves after the event is
// durable, at least once, and in order for its instance and name (statemachine/DEFINITION.md, "Deliveries").
type Out struct {
	// Webhook is its name; "" for a mail.
	Webhook string
	// Body is the data of a webhook.
	Body data.Value
	// To, Subject and Text are those of a mail. An addressee is user:NAME, role:NAME or an address.
	To            []string
	Subject, Text string
	// Start and End are for a child, and Tell is for the parent; nil for all others.
	Start *ChildStart
	End   *ChildEnd
	Tell  *ParentNews
	// Forward is an event for the parent or a child.
	Forward *Forward
}

// Webhook is where deliveries of one name go.
type Webhook struct {
	Name string
	Line int    // in the file
	URL  string // "": the service's settings have it
	// RetryLimit is how many tries follow the first one; they wait for Delay, then Backoff times as long, and so on
	// up to MaxDelay. Jitter: each waits for a random part less.
	RetryLimit      int
	Delay, MaxDelay time.Duration
	Backoff         float64
	Jitter          bool
	// OnDone and OnError are the events that tell the instance; "": none.
	OnDone, OnError EventName
}

// Webhook returns one of the definition's; nil when it has none of that name.
func (d *Definition) Webhook(name string) *Webhook { return d.webhooks[name] }

// Webhooks returns those of the definition, by name.
func (d *Definition) Webhooks() []*Webhook {
	return slices.SortedFunc(maps.Values(d.webhooks), func(a, b *Webhook) int { return cmp.Compare(a.Name, b.Name) })
}

// MailLine is the line of the first action that sends a mail; 0 when none does.
func (d *Definition) MailLine() int { return d.mailLine }

// Addressees returns the users and roles that mails go to, as "user:NAME" and "role:NAME", each once; those that an expression gives are not known.
func (d *Definition) Addressees() []Reference { return d.mailedTo }

// ByItselfLine is the line of the first thing that an instance does by itself, or of something else that came with it and that
// programs before do not read, such as another tool's semantics; 0 when there is none.
func (d *Definition) ByItselfLine() int { return d.ownLine }

// sendOut is the action webhook.
type sendOut struct {
	to   string
	body *template // nil: none
}

func (a sendOut) run(m *move) error {
	var v data.Value
	if a.body != nil {
		var err error
		if v, err = a.body.eval(&m.scope); err != nil {
			return err
		}
	}
	m.putOut(Out{Webhook: a.to, Body: v}, len(v))
	return nil
}

// sendMail is the action mail.
type sendMail struct {
	to            *template
	subject, body *prose
}

func (a sendMail) run(m *move) error {
	v, err := a.to.eval(&m.scope)
	if err != nil {
		return err
	}
	to, err := addressees(v)
	if err != nil {
		return err
	}
	subject, err := a.subject.text(&m.scope)
	if err != nil {
		return err
	}
	body, err := a.body.text(&m.scope)
	if err != nil {
		return err
	}
	// NB: a line break in a subject would begin another header.
	subject = strings.Join(strings.Fields(subject), " ")
	m.putOut(Out{To: to, Subject: subject, Text: body}, len(subject)+len(body))
	return nil
}

func (m *move) putOut(out Out, bytes int) {
	m.outBytes += bytes
	switch {
	case len(m.out) >= maxOut:
		m.fail(errTooManyOut)
	case m.outBytes > maxOutBytes:
		m.fail(errOutLarge)
	default:
		m.out = append(m.out, out)
	}
}

var errLongURL = fmt.Errorf("longer than %d bytes", webhookURLMax)

var errWebhookURL = errors.New("a webhook is http or https, with a host, and without user and #")

var errAddressee = errors.New("mail: to is user:NAME, role:NAME, an address, or a list of them")

// addressees reads a text or a list of texts.
func addressees(v data.Value) (to []string, err error) {
	list := []data.Value{v}
	if v.Kind() == data.Array {
		list = list[:0]
		for _, item := range v.Elements() {
			list = append(list, item)
		}
	}
	for _, item := range list {
		if item.Kind() != data.String {
			return nil, errAddressee
		}
		text := item.Text()
		if err := checkAddressee(text); err != nil {
			return nil, err
		}
		to = append(to, text)
	}
	if len(to) == 0 || len(to) > maxMailTo {
		return nil, fmt.Errorf("%w, of one to %d", errAddressee, maxMailTo)
	}
	return to, nil
}

func checkAddressee(text string) error {
	for _, kind := range []string{"user:", "role:"} {
		if name, ok := strings.CutPrefix(text, kind); ok {
			if name == "" {
				return errAddressee
			}
			return nil
		}
	}
	if a, err := mail.ParseAddress(text); err != nil || a.Address != text {
		return fmt.Errorf("%w, not %q", errAddressee, data.Shorten(text))
	}
	return nil
}

// prose is a text for people: parts, of which those with a program are expressions.
type prose struct {
	parts []prosePart
}

type prosePart struct {
	literal string
	program *expr.Program
}

func (p *prose) text(s *expr.Scope) (string, error) {
	if p == nil {
		return "", nil
	}
	var b strings.Builder
	for _, part := range p.parts {
		if part.program == nil {
			b.WriteString(part.literal)
			continue
		}
		v, err := part.program.Value(s)
		if err != nil {
			return "", err
		}
		if v.Kind() == data.String {
			b.WriteString(v.Text())
		} else {
			b.WriteString(string(v))
		}
		if b.Len() > maxTemplateBytes {
			return "", errTemplateTooLarge
		}
	}
	s.Budget.ChargeBytes(b.Len())
	return b.String(), nil
}

// SplitText cuts a text for people into literals and the expressions in ${…}. A ${ whose } is missing is literal.
func SplitText(text string) (parts []string, isExpression []bool) {
	for text != "" {
		start := strings.Index(text, "${")
		end := -1
		if start >= 0 {
			end = expressionEnd(text[start+2:])
		}
		if end < 0 {
			return append(parts, text), append(isExpression, false)
		}
		if start > 0 {
			parts, isExpression = append(parts, text[:start]), append(isExpression, false)
		}
		parts, isExpression = append(parts, text[start+2:start+2+end]), append(isExpression, true)
		text = text[start+2+end+1:]
	}
	return parts, isExpression
}

// expressionEnd is where the } stands that ends an expression: behind those of its maps, and not in its texts. -1: it
// is missing.
func expressionEnd(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		case '"', '\'':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
	}
	return -1
}
