package instances

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
)

// queryInstances answers GET workflow/api/v1/instances/{workflowId}. Without limit the list is streamed. With it the
// page is collected first, because its header Link and its member next are known only at its end.
func (g *Group) queryInstances(x *kernel.Exchange) error {
	request, err := ParseQueryRequest(x.Query)
	if err != nil {
		return err
	}
	mayManage := x.Caller.Has(identity.Workflows)
	if slices.Contains(request.Fields, fieldPrivate) && !mayManage {
		return parse.Malformed(`the query parameter "fields" can name %q only for holders of the privilege %s`, fieldPrivate, identity.Workflows)
	}
	if request.Explain && !mayManage {
		return failure.Needs(identity.Workflows)
	}
	if err := x.CheckIdentifiers(); err != nil {
		return err
	}
	request.Caller, request.WorkflowID = x.Caller, x.Params.ByName("workflowId")
	if slices.Contains(request.Fields, fieldTitle) {
		request.Languages = x.Languages()
	}
	x.Out = append(x.Out, `{"instances":[`...)
	first := true
	end, err := g.Queries.Query(x.Request.Context(), request, func(instance []byte) error {
		if !first {
			x.Out = append(x.Out, ',')
		}
		first = false
		x.Out = append(x.Out, instance...)
		if request.Limit > 0 || len(x.Out) < kernel.StreamBytes {
			return nil
		}
		return x.Flush()
	})
	x.RenewWriteTime()
	if err != nil {
		return err // NB: when a piece was sent, writeError closes the connection
	}
	if err := appendQueryEnd(x, request, end); err != nil {
		return err
	}
	return x.SendRest()
}

// appendQueryEnd appends what follows the last instance, and sets the header that goes with it.
func appendQueryEnd(x *kernel.Exchange, request *query.Request, end *query.End) error {
	x.Out = append(x.Out, ']')
	if request.Limit > 0 {
		x.AppendNext(end.Next)
	}
	if request.Count {
		x.Out = append(x.Out, `,"count":`...)
		x.Out = strconv.AppendInt(x.Out, end.Count, 10)
	}
	if request.Explain {
		x.Out = append(x.Out, `,"explain":`...)
		if err := x.AppendJSON(explainOf(end.Explain)); err != nil {
			return err
		}
	}
	x.Out = append(x.Out, '}')
	return nil
}

func explainOf(e *query.Explain) api.Explain {
	out := api.Explain{Matched: e.Matched, Considered: []api.Considered{}}
	all := e.Plan != ""
	if all {
		out.Index, out.Plan, out.KeysRead, out.RecordsRead, out.Milliseconds = e.Index, &e.Plan, &e.KeysRead, &e.RecordsRead, &e.Milliseconds
	}
	for i := range e.Considered {
		c := &e.Considered[i]
		shown := api.Considered{Index: c.Index}
		if all {
			shown.Keys, shown.AtLeast = &c.Keys, &c.AtLeast
		}
		out.Considered = append(out.Considered, shown)
	}
	return out
}

func (g *Group) listHistory(x *kernel.Exchange) error {
	q := parse.Parameters{Values: x.Query}
	request := message.History{
		Caller: x.Caller, Limit: q.Limit(parse.PageDefault), Cursor: q.Cursor(), WithData: parse.Choice(&q, "fields", "data") != "",
		Descending: parse.Choice(&q, "order", parse.Ascending, parse.Descending) == parse.Descending,
	}
	if q.Err != nil {
		return q.Err
	}
	if err := x.CheckIdentifiers(); err != nil {
		return err
	}
	request.WorkflowID, request.InstanceID = x.Params.ByName("workflowId"), x.Params.ByName("instanceId")
	page, err := g.Workflows.History(&request)
	if err != nil {
		return err
	}
	x.NoteInstance(&message.Load{WorkflowID: request.WorkflowID, InstanceID: request.InstanceID, ByPrivilege: request.ByPrivilege})
	x.SetLeader(request.InstanceID)
	x.Out = append(x.Out, `{"history":[`...)
	x.Out = append(x.Out, page.Entries...)
	x.Out = append(x.Out, ']')
	x.AppendNext(page.Next)
	x.Out = append(x.Out, '}')
	x.Send(http.StatusOK)
	return nil
}

var queryFields = []string{"svcHistory", "svcRedirect", fieldPrivate, fieldTitle}

// fieldTitle is the one that depends on the reader's language.
const fieldTitle = "title"

// fieldPrivate is the one that only holders of mod-workflows may ask for.
const fieldPrivate = "svcPrivate"

// ParseQueryRequest parses the parameters of GET instances. An empty filter is like
// none; any other empty parameter is failure.ErrInvalid, because its meaning is unclear.
func ParseQueryRequest(values url.Values) (*query.Request, error) {
	q := parse.Parameters{Values: values}
	request := &query.Request{Filter: values.Get("filter"), Limit: q.Limit(0), Cursor: q.Cursor()}
	if request.Cursor != "" && request.Limit == 0 {
		q.Refuse(`the query parameter "cursor" needs "limit"`)
	}
	request.Sort, request.Fields, request.Count, request.Explain = q.Text("sort"), parseFields(&q), q.Flag("count"), q.Flag("explain")
	if q.Err != nil {
		return nil, q.Err
	}
	return request, nil
}

// parseFields parses the comma-separated list fields: known names, each once.
func parseFields(q *parse.Parameters) (fields []string) {
	text := q.Text("fields")
	if text == "" {
		return nil
	}
	for name := range strings.SplitSeq(text, ",") {
		if !slices.Contains(queryFields, name) {
			q.Refuse(`the query parameter "fields" has the unknown name %s; allowed are %s`, parse.Quote(name), strings.Join(queryFields, ", "))
		}
		if slices.Contains(fields, name) {
			q.Refuse(`the query parameter "fields" has %q twice`, name)
		}
		fields = append(fields, name)
	}
	return fields
}
