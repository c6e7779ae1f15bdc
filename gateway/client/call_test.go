package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/api"
	"troupe/gateway/servertest"
)

// TestTasks lists a task, claims it, comments, and decides it.
func TestTasks(t *testing.T) {
	s := servertest.Start(t)
	c := connect(t, s.URL, Options{Token: s.Token})
	var ids []string
	for range 3 {
		i, err := c.Create(t.Context(), CreateRequest{WorkflowID: servertest.Workflow})
		require.NoError(t, err)
		_, err = c.Send(t.Context(), SendRequest{WorkflowID: servertest.Workflow, InstanceID: i.ID, Event: "submit"})
		require.NoError(t, err)
		ids = append(ids, i.ID)
	}
	var tasks []string
	for page, err := range c.TasksPages(t.Context(), TasksRequest{Scope: "open", Sort: "created", WorkflowID: servertest.Workflow, Query: "look", Filter: `{"status":"open"}`, Limit: 2, Count: true}) {
		require.NoError(t, err)
		assert.True(t, page.Count != nil && *page.Count == 3, "got the number %v", page.Count)
		for _, task := range page.Items {
			tasks = append(tasks, task.TaskID)
			assert.True(t, task.Title == "Look at it" && task.RequesterName != nil && *task.RequesterName == "John Doe" && len(task.Events) != 0 && task.Due != nil, task)
		}
	}
	require.Len(t, tasks, 3)
	if task, err := c.ChangeTask(t.Context(), tasks[0], ClaimTask, ""); err != nil || task.Status != "claimed" || len(task.Raw) == 0 {
		t.Errorf("got %+v, %v", task, err)
	}
	if task, err := c.ChangeTask(t.Context(), tasks[0], AssignTask, servertest.User); err != nil || task.Assignee == nil {
		t.Errorf("got %+v, %v", task, err)
	}
	if comment, err := c.Comment(t.Context(), servertest.Workflow, ids[0], "hello"); err != nil || comment.Text != "hello" || comment.UserName != "John Doe" {
		t.Errorf("got %+v, %v", comment, err)
	}
	if task, err := c.Task(t.Context(), tasks[0]); err != nil || task.InstanceID != ids[0] {
		t.Errorf("got %+v, %v", task, err)
	}
	var kinds []string
	for page, err := range c.ActivityPages(t.Context(), ActivityRequest{WorkflowID: servertest.Workflow, InstanceID: ids[0], OldestFirst: true, Limit: 2}) {
		require.NoError(t, err)
		for _, a := range page.Items {
			kinds = append(kinds, a.Kind)
		}
	}
	assert.True(t, len(kinds) == 4 && kinds[0] == "history" && kinds[2] == "task" && kinds[3] == "comment", "got %q", kinds)
	_, err := c.ChangeTask(t.Context(), ids[0]+"-9-9", ReleaseTask, "")
	wantStatus(t, err, 404, "NotFound")
	_, err = c.Tasks(t.Context(), TasksRequest{Limit: 1001})
	assert.Error(t, err, "a limit of 1001 is taken")
}

func TestOperations(t *testing.T) {
	s, id := servertest.StartNotice(t)
	c := connect(t, s.URL, Options{Token: s.Token})
	p, err := c.Pending(t.Context(), servertest.Notice, id)
	require.True(t, err == nil && len(p.Timers) == 2 && len(p.Deliveries) == 1 && p.Deliveries[0].URL == "https://example.org/hook" && p.Ended == nil, "%v %v", p, err)
	var outbox, incidents, timers []string
	for page, err := range c.TimersPages(t.Context(), TimersRequest{WorkflowID: servertest.Notice, Limit: 1}) {
		require.NoError(t, err)
		for _, timer := range page.Items {
			timers = append(timers, timer.ID+" "+timer.InstanceID)
		}
	}
	if len(timers) != 1 || timers[0] != p.Timers[0].ID+" "+id {
		t.Errorf("got the timers %q, want the first of %+v", timers, p.Timers)
	}
	for page, err := range c.OutboxPages(t.Context(), OutboxRequest{State: "dead", Limit: 1}) {
		require.NoError(t, err)
		for _, d := range page.Items {
			outbox = append(outbox, d.ID)
		}
	}
	for page, err := range c.IncidentsPages(t.Context(), IncidentsRequest{Limit: 1}) {
		require.NoError(t, err)
		for _, in := range page.Items {
			incidents = append(incidents, in.ID)
		}
	}
	require.True(t, len(outbox) == 1 && outbox[0] == p.Deliveries[0].ID && len(incidents) == 1, "got %v and %v", outbox, incidents)
	again := c.ChangeIncident(t.Context(), incidents[0], Retry)
	wantStatus(t, again, 500, "MarshallingError")
	assert.Contains(t, again.Error(), "the event failed again: ")
	for _, err := range []error{
		c.ChangeIncident(t.Context(), incidents[0], Drop), c.ChangeDelivery(t.Context(), outbox[0], Retry), c.ChangeDelivery(t.Context(), outbox[0], Drop),
	} {
		assert.NoError(t, err)
	}
	wantStatus(t, c.ChangeDelivery(t.Context(), outbox[0], Drop), 404, "NotFound")
	wantStatus(t, c.ChangeIncident(t.Context(), incidents[0], Drop), 404, "NotFound")
	_, err = c.Outbox(t.Context(), OutboxRequest{Limit: 1001})
	assert.Error(t, err, "a limit of 1001 is taken")
}

// TestATreeIsStopped: by its user, whom the history names. It can be asked again.
func TestATreeIsStopped(t *testing.T) {
	s, id := servertest.StartNotice(t)
	c := connect(t, s.URL, Options{Token: s.Token})
	for range 2 {
		require.NoError(t, c.StopTree(t.Context(), servertest.Notice, id))
	}
	p, err := c.Pending(t.Context(), servertest.Notice, id)
	assert.True(t, err == nil && p.Ended != nil && *p.Ended == "cancelled" && len(p.Timers) == 0, "it waits for %+v, %v", p, err)
	history, err := c.History(t.Context(), HistoryRequest{WorkflowID: servertest.Notice, InstanceID: id, Limit: 10})
	require.NoError(t, err)
	last := history.Items[len(history.Items)-1]
	assert.True(t, last.TransitionEvent == "parent.cancelled" && last.User == servertest.User, "the last entry is %+v", last)
	_, err = c.Send(t.Context(), SendRequest{WorkflowID: servertest.Notice, InstanceID: id, Event: "tell"})
	wantStatus(t, err, 409, "Ended")
	wantStatus(t, c.StopTree(t.Context(), servertest.Notice, "01M7YZAB2GNTJFQE62690KHSQT"), 404, "NotFound")
}

// TestBatch holds that results stand where their items do, and that the same batch under
// the same key is done once.
func TestBatch(t *testing.T) {
	s, c := started(t, Options{})
	id := s.Create(`{}`, "submit")
	items := []json.RawMessage{
		json.RawMessage(`{"workflowId":"leave","instanceId":"` + id + `","event":{"name":"note"}}`),
		json.RawMessage(`{"workflowId":"leave","instanceId":"` + id + `","event":{"name":"sbumit"}}`),
		json.RawMessage(`{"workflowId":"leave"}`),
	}
	first, err := c.Batch(t.Context(), BatchRequest{Items: items, Key: "k"})
	require.True(t, err == nil && len(first) == 3 && first[0].Err() == nil && first[0].Sequence == 3 && first[2].InstanceID != "", "got %+v, %v", first, err)
	if refused := (*Error)(nil); !errors.As(first[1].Err(), &refused) || refused.Status != 400 || refused.Code != "InvalidContent" {
		t.Errorf("got %v, want 400 InvalidContent", first[1].Err())
	}
	again, err := c.Batch(t.Context(), BatchRequest{Items: items, Key: "k"})
	assert.True(t, err == nil && slices.Equal(again, first), "again: got %+v, %v, want %+v", again, err, first)
	_, err = c.Batch(t.Context(), BatchRequest{Items: items[:1], Key: "k"})
	assert.Error(t, err, "another batch under the key was taken")
	none, err := c.Batch(t.Context(), BatchRequest{})
	assert.True(t, err == nil && len(none) == 0, "no items: got %+v, %v", none, err)
	for _, wrong := range []BatchRequest{{Items: []json.RawMessage{[]byte("{")}}, {Items: make([]json.RawMessage, BatchMax+1)}, {Key: "a b"}} {
		_, err := c.Batch(t.Context(), wrong)
		assert.ErrorIs(t, err, ErrInvalid)
	}
}

// TestBatchIsRepeatedWithItsKey, and an answer with another number of results is none.
func TestBatchIsRepeatedWithItsKey(t *testing.T) {
	var calls atomic.Int64
	var keys [2]string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := calls.Add(1) - 1
		keys[n%2] = r.Header.Get("Idempotency-Key")
		if n == 0 {
			w.WriteHeader(http.StatusGatewayTimeout)
			return
		}
		_, _ = w.Write([]byte(`{"results":[]}`))
	}))
	defer s.Close()
	c := connect(t, s.URL, Options{HTTP: unkept()})
	_, err := c.Batch(t.Context(), BatchRequest{Items: []json.RawMessage{[]byte("{}")}})
	if !errors.Is(err, ErrProtocol) || calls.Load() != 2 || keys[0] == "" || keys[0] != keys[1] {
		t.Errorf("got %v after %d calls with the keys %q, want ErrProtocol after 2 with one", err, calls.Load(), keys)
	}
}

func TestChangesGoOnBehindTheirCursor(t *testing.T) {
	s, c := started(t, Options{})
	first := s.Create(`{}`, "submit")
	var got []string
	since := ""
	for page, err := range c.ChangePages(t.Context(), ChangesRequest{WorkflowID: "leave", Since: "0", Limit: 1}) {
		require.NoError(t, err)
		for _, change := range page.Items {
			got = append(got, fmt.Sprintf("%s %d %s %s", change.InstanceID, change.Sequence, change.Entry.TransitionEvent, change.States[0].NodeID))
		}
		if since = page.Next; len(page.Items) == 0 {
			break
		}
	}
	want := []string{first + " 1  draft", first + " 2 submit review"}
	assert.True(t, slices.Equal(got, want), "got %q, want %q", got, want)
	s.Send(first, "approve")
	page, err := c.Changes(t.Context(), ChangesRequest{Since: since, Wait: time.Second})
	assert.True(t, err == nil && len(page.Items) == 1 && page.Items[0].Sequence == 3, "of all workflows: got %+v, %v, want the third entry", page, err)
	now, err := c.Changes(t.Context(), ChangesRequest{})
	assert.True(t, err == nil && len(now.Items) == 0 && now.Next != "", "without a cursor: got %+v, %v, want none and a cursor", now, err)
	assert.Empty(t, s.Requests()[len(s.Requests())-1].Query, "without anything: got the parameters")
	for _, refused := range []ChangesRequest{{WorkflowID: "a/b"}, {Limit: 1001}} {
		_, err := c.Changes(t.Context(), refused)
		assert.ErrorIs(t, err, ErrInvalid, refused)
	}
	_, err = c.Changes(t.Context(), ChangesRequest{Since: "x"})
	wantStatus(t, err, 400, "InvalidContent")
}

// TestRequests lists what the caller has created.
func TestRequests(t *testing.T) {
	s := servertest.Start(t)
	c := connect(t, s.URL, Options{Token: s.Token})
	var want, got []string
	for range 3 {
		i, err := c.Create(t.Context(), CreateRequest{WorkflowID: servertest.Workflow})
		require.NoError(t, err)
		want = append(want, i.ID)
	}
	for page, err := range c.RequestsPages(t.Context(), RequestsRequest{Kind: "instance", Category: "current", WorkflowID: servertest.Workflow, Sort: "when", Limit: 2, Count: true}) {
		require.NoError(t, err)
		assert.True(t, page.Count != nil && *page.Count == 3 && len(page.Raw) != 0, "got the number %v in %s", page.Count, page.Raw)
		for _, r := range page.Items {
			got = append(got, r.ID)
			assert.True(t, r.By == servertest.User && r.WorkflowID == servertest.Workflow && r.Category == "current", "got %+v", r)
		}
	}
	if slices.Sort(want); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("got %v, want %v", got, want)
	}
	page, err := c.Requests(t.Context(), RequestsRequest{Query: want[0]})
	assert.True(t, err == nil && len(page.Items) == 1 && page.Next == "" && page.Count == nil, "searched: got %+v, %v", page, err)
	_, err = c.Requests(t.Context(), RequestsRequest{Limit: 1001})
	assert.Error(t, err, "a page of 1,001 is asked for")
}

func TestMigrate(t *testing.T) {
	s := servertest.Start(t)
	c := connect(t, s.URL, Options{Token: s.Token})
	for range 3 {
		s.Create(`{}`, "submit")
	}
	s.Revise("review", "check")
	request := &api.MigrationRequest{Plan: json.RawMessage(`{"from":1,"to":2}`), Limit: 2}
	done, err := c.Migrate(t.Context(), servertest.Workflow, request)
	require.True(t, err == nil && done.Matched == 2 && len(done.Refused) == 2 && done.Next != nil, "got %+v, %v", done, err)
	request.Plan = json.RawMessage(`{"from":1,"to":2,"nodes":{"main":{"review":"check"}}}`)
	request.Cursor = *done.Next
	done, err = c.Migrate(t.Context(), servertest.Workflow, request)
	assert.True(t, err == nil && done.MigrationAnswer.Migrated == 1 && done.Next == nil, "got %+v, %v", done, err)
	request.Plan = json.RawMessage(`{"from":1,"to":3}`)
	_, err = c.Migrate(t.Context(), servertest.Workflow, request)
	refused := (*Error)(nil)
	assert.True(t, errors.As(err, &refused) && len(refused.Faults) == 1 && refused.Faults[0].Line == 1, "a version that is not there: got %v", err)
	_, err = c.Migrate(t.Context(), "nothing", request)
	wantStatus(t, err, 404, "NotFound")
}

// TestDefinitions holds gateway/INTERFACE.md, "Published definitions".
func TestDefinitions(t *testing.T) {
	s := servertest.Start(t)
	c := connect(t, s.URL, Options{Token: s.Token})
	id := s.Create(`{}`)
	s.Revise("draft", "sketch")
	all, err := c.Definitions(t.Context())
	assert.True(t, err == nil && len(all) == 1 && all[0].ID == "leave" && all[0].Current == 2 && len(all[0].Versions) == 2, "got %+v, %v", all, err)
	for version, want := range map[uint64]uint64{0: 2, 1: 1, 2: 2} {
		d, err := c.Definition(t.Context(), "leave", version)
		assert.True(t, err == nil && d.Version == want && d.Text != "", "version %d: got %+v, %v", version, d, err)
	}
	p, err := c.Pending(t.Context(), "leave", id)
	assert.True(t, err == nil && p.Version == 1, "an instance of version 1: got %+v, %v", p, err)
	_, err = c.Definition(t.Context(), "leave", 3)
	wantStatus(t, err, 404, "NotFound")
	_, err = c.Definition(t.Context(), "a b", 0)
	assert.Error(t, err, "an id that cannot be one is asked for")
}
