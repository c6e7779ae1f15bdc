package instances

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"troupe/actors/changefeed"
	"troupe/actors/failure"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// listChanges answers GET workflow/api/v1/changes. One that waits counts as a watcher meanwhile, and no longer
// as a request in flight.
func (g *Group) listChanges(x *kernel.Exchange) error {
	request := changefeed.Request{Caller: x.Caller}
	var err error
	if request.Limit, err = parse.Limit(x.Query, parse.PageDefault); err != nil {
		return err
	}
	if request.Wait, err = parseWait(x.Query); err != nil {
		return err
	}
	if request.Since, err = parse.Text(x.Query, "since"); err != nil {
		return err
	}
	if !parse.IsVisible(request.Since) {
		return parse.Malformed(`the query parameter "since" is not valid`)
	}
	if request.WorkflowID, err = parse.Text(x.Query, "workflowId"); err != nil {
		return err
	}
	if request.WorkflowID != "" && !statemachine.IsIdentifier(request.WorkflowID) {
		return failure.ErrNotFound
	}
	waits := false
	request.Waiting = func() error {
		if err := x.AdmitWatcher(); err != nil {
			return err
		}
		waits = true
		x.EndAdmission()
		return nil
	}
	page, err := g.Workflows.Changes(x.Request.Context(), &request)
	if waits {
		x.ReleaseWatcher()
		x.RenewWriteTime()
	}
	if err != nil {
		return err
	}
	appendChanges(x, page)
	return nil
}

// appendChanges sends a page.
func appendChanges(x *kernel.Exchange, page *changefeed.Page) {
	x.Out = append(x.Out, `{"changes":[`...)
	for n, e := range page.Changes {
		if n > 0 {
			x.Out = append(x.Out, ',')
		}
		x.Out = append(x.Out, `{"workflowId":`...)
		x.Out = data.AppendString(x.Out, e.Workflow)
		x.Out = append(x.Out, `,"instanceId":"`...)
		x.Out = append(x.Out, e.Name...)
		x.Out = append(x.Out, `","sequence":`...)
		x.Out = strconv.AppendUint(x.Out, e.Sequence, 10)
		x.Out = append(x.Out, `,"entry":`...)
		x.Out = append(x.Out, e.Text...)
		x.Out = append(x.Out, `,"states":`...)
		x.Out = append(x.Out, e.States...)
		x.Out = append(x.Out, '}')
	}
	x.Out = append(x.Out, `],"next":`...)
	x.Out = data.AppendString(x.Out, page.Next)
	x.Out = append(x.Out, '}')
	x.Send(http.StatusOK)
}

// parseWait parses wait: 0 to changefeed.WaitMax in seconds, in decimal digits without leading zeros.
func parseWait(query url.Values) (time.Duration, error) {
	text, err := parse.Text(query, "wait")
	if err != nil || text == "" || text == "0" {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	most := int(changefeed.WaitMax / time.Second)
	// NB: Atoi accepts signs and leading zeros.
	if err != nil || n < 1 || n > most || text[0] < '1' || text[0] > '9' {
		return 0, parse.Malformed(`the query parameter "wait" must be a number of seconds from 0 to %d`, most)
	}
	return time.Duration(n) * time.Second, nil
}
