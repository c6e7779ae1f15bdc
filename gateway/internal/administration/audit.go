package administration

import (
	"slices"
	"strconv"
	"time"

	"troupe/actors/audit"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/statemachine/document"
)

func (g *Group) listAudit(x *kernel.Exchange) error {
	q := parse.Parameters{Values: x.Query}
	asked := audit.Query{
		Actor: q.Text("actor"), Action: audit.Action(q.Text("action")), Limit: q.Limit(parse.PageDefault),
		Newest: parse.Choice(&q, "order", parse.Ascending, parse.Descending) == parse.Descending,
	}
	if text := q.Text("since"); text != "" {
		var err error
		if asked.Since, err = time.Parse(time.RFC3339, text); err != nil {
			q.Refuse(`the query parameter "since" must be a time such as 2026-11-26T09:31:00Z`)
		}
	}
	if text := q.Text("after"); text != "" {
		var err error
		if asked.After, err = strconv.ParseUint(text, 10, 63); err != nil {
			q.Refuse(`the query parameter "after" must be "next" of an earlier answer`)
		}
	}
	if known := audit.Actions(); asked.Action != "" && !slices.Contains(known, asked.Action) {
		names := make([]string, len(known))
		for i, a := range known {
			names[i] = string(a)
		}
		meant := document.DidYouMean(string(asked.Action), names)
		if meant != "" {
			meant = "; " + meant
		}
		q.Refuse("there is no action %s%s", parse.Quote(string(asked.Action)), meant)
	}
	if q.Err != nil {
		return q.Err
	}
	page, err := g.Audit.List(x.Request.Context(), &asked)
	if err != nil {
		return err
	}
	answer := api.AuditPage{Audit: []api.AuditRow{}}
	for _, r := range page.Rows {
		answer.Audit = append(answer.Audit, api.AuditRow{TS: r.TS, Actor: r.Actor, Action: string(r.Action), Target: r.Target, Count: r.Count, Hash: r.Hash, Prev: r.Prev})
	}
	if page.More || !asked.Newest {
		next := strconv.FormatUint(page.Next, 10)
		answer.Next = &next
	}
	return x.AnswerJSON(answer)
}

func (g *Group) verifyAudit(x *kernel.Exchange) error {
	chain, err := g.Audit.Verify(x.Request.Context())
	if err != nil {
		return err
	}
	answer := api.AuditChain{Rows: chain.Rows, Head: chain.Head}
	if chain.Broken != "" {
		answer.Broken = &chain.Broken
	}
	return x.AnswerJSON(answer)
}
