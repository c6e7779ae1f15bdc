package parse

import (
	"cmp"
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/clause"
)

func (b *builder) sendOut(n *document.Node) chart.Action {
	a := &chart.SendOut{}
	if !b.Mapping(n, clause.SendOutKeys) {
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
		a.Body = b.Template(v)
	}
	return a
}

// checkWebhooks holds that every action names a webhook that there is.
func (b *builder) checkWebhooks() {
	var names []string
	for name := range b.Definition.WebhookByName {
		names = append(names, name)
	}
	for _, at := range b.webhooked {
		if !slices.Contains(names, at.Text) {
			b.Suggest(at, at.Text, names, "unknown webhook %q", data.Shorten(at.Text))
		}
	}
}

func (b *builder) sendMail(n *document.Node) chart.Action {
	a := &chart.SendMail{}
	if !b.Mapping(n, clause.MailKeys) {
		return a
	}
	for _, key := range clause.MailKeys {
		if n.Field(key) == nil {
			b.Add(n, "mail needs %q", key)
			return a
		}
	}
	a.To = b.Template(n.Field("to"))
	if a.To != nil && a.To.Constant != nil {
		to, err := chart.Addressees(a.To.Constant)
		if err != nil {
			b.Add(n.Field("to"), "%v", err)
		}
		for _, addressee := range to {
			if !strings.Contains(addressee, "@") {
				b.Definition.Addressees = chart.AddReference(b.Definition.Addressees, addressee, n.Field("to").Line)
			}
			if role, ok := strings.CutPrefix(addressee, "role:"); ok && b.Options.HasRole != nil && !b.Options.HasRole(role) {
				b.Suggest(n.Field("to"), role, b.Options.Roles, "unknown role %q", data.Shorten(role))
			}
		}
	}
	a.Subject, a.Body = b.Prose(n.Field("subject")), b.Prose(n.Field("body"))
	b.Definition.MailLine = cmp.Or(b.Definition.MailLine, n.Line)
	return a
}
