package gateway

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"troupe/actors/changefeed"
	"troupe/actors/failure"
	"troupe/gateway/internal/parse"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// listChanges answers GET workflow/api/v1/changes. One that waits counts as a watcher meanwhile, and no longer
// as a request in flight.
func listChanges(x *exchange) error {
	request := changefeed.Request{Caller: x.caller}
	var err error
	if request.Limit, err = parse.Limit(x.query, parse.HistoryPageDefault); err != nil {
		return err
	}
	if request.Wait, err = parseWait(x.query); err != nil {
		return err
	}
	if request.Since, err = parse.Text(x.query, "since"); err != nil {
		return err
	}
	if !parse.IsVisible(request.Since) {
		return parse.Malformed(`the query parameter "since" is not valid`)
	}
	if request.WorkflowID, err = parse.Text(x.query, "workflowId"); err != nil {
		return err
	}
	if request.WorkflowID != "" && !statemachine.IsIdentifier(request.WorkflowID) {
		return failure.ErrNotFound
	}
	waits := false
	request.Waiting = func() error {
		if err := x.admitWatcher(); err != nil {
			return err
		}
		waits = true
		x.endAdmission()
		return nil
	}
	page, err := x.services.Workflows.Changes(x.r.Context(), &request)
	if waits {
		x.releaseWatcher()
		x.renewWriteTime()
	}
	if err != nil {
		return err
	}
	x.appendChanges(page)
	return nil
}

// appendChanges sends a page.
func (x *exchange) appendChanges(page *changefeed.Page) {
	x.out = append(x.out, `{"changes":[`...)
	for n, e := range page.Changes {
		if n > 0 {
			x.out = append(x.out, ',')
		}
		x.out = append(x.out, `{"workflowId":`...)
		x.out = data.AppendString(x.out, e.Workflow)
		x.out = append(x.out, `,"instanceId":"`...)
		x.out = append(x.out, e.Name...)
		x.out = append(x.out, `","sequence":`...)
		x.out = strconv.AppendUint(x.out, e.Sequence, 10)
		x.out = append(x.out, `,"entry":`...)
		x.out = append(x.out, e.Text...)
		x.out = append(x.out, `,"states":`...)
		x.out = append(x.out, e.States...)
		x.out = append(x.out, '}')
	}
	x.out = append(x.out, `],"next":`...)
	x.out = data.AppendString(x.out, page.Next)
	x.out = append(x.out, '}')
	x.send(http.StatusOK)
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
