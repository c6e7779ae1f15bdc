package gateway_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/actors/actorstest"
	"troupe/actors/quota"
	"troupe/actors/workflow"
	"troupe/gateway/wiretest"
)

// TestInterfaceBatch holds gateway/INTERFACE.md, "Batches".
func TestInterfaceBatch(t *testing.T) {
	s := newScene(t)
	for says, check := range map[string]func(*testing.T, *scene){
		"lines go in and out at the same time": linesBothWays,
		"bodies end early":                     bodiesEndEarly,
		"no item, 10,000 and one more":         numberOfItems,
		"16 MiB and one byte more":             sizeOfBatch,
		"a caller who leaves in the middle has the items done that were answered": leavingBatch,
	} {
		t.Run(says, func(t *testing.T) { check(t, s) })
	}
}

const lines = "Content-Type: application/x-ndjson"

// result is one of a batch.
type result struct {
	Status                                 int
	WorkflowID, InstanceID, Error, Message string
	Sequence                               int
	State                                  *record
}

// sendBatch sends items as an array.
func (u user) sendBatch(t testing.TB, items []string, headers ...string) []result {
	t.Helper()
	return readBatch(t, u.Post(t, wiretest.Root+"/events", "["+strings.Join(items, ",")+"]", headers...))
}

func readBatch(t testing.TB, a answer) []result {
	t.Helper()
	a.WantStatus(t, 200)
	return wiretest.Decode[struct{ Results []result }](t, a.Body).Results
}

// postLines sends lines.
func (u user) postLines(t testing.TB, text string, headers ...string) answer {
	t.Helper()
	return u.Send(t, request{Method: "POST", Path: wiretest.Root + "/events", Headers: slices.Concat(u.Credential, []string{lines}, headers), Body: text})
}

// sendLines sends items as lines.
func (u user) sendLines(t testing.TB, items []string, headers ...string) []result {
	t.Helper()
	return resultLines(t, u.postLines(t, strings.Join(items, "\n"), headers...))
}

func resultLines(t testing.TB, a answer) (results []result) {
	t.Helper()
	a.WantStatus(t, 200)
	for line := range strings.Lines(a.Body) {
		results = append(results, wiretest.Decode[result](t, line))
	}
	return results
}

func statuses(results []result) (all []int) {
	for _, r := range results {
		all = append(all, r.Status)
	}
	return all
}

func wantStatuses(t testing.TB, what string, got []result, want ...int) {
	t.Helper()
	assert.True(t, slices.Equal(statuses(got), want), "%s: got %+v, want %v", what, got, want)
}

func linesBothWays(t *testing.T, s *scene) {
	r := s.ann.Create(t, "order", "").Record(t)
	conn, err := s.Dial()
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	send := func(text string) {
		_, err := io.WriteString(conn, text)
		require.NoError(t, err)
	}
	chunk := func(text string) { send(fmt.Sprintf("%x\r\n%s\r\n", len(text), text)) }
	send("POST " + wiretest.Root + "/events HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n" + s.ann.Credential[0] + "\r\n" + lines + "\r\n\r\n")
	var answers *bufio.Reader
	for n := range 5 {
		item := wiretest.EventBody("order", r.ID, "note", "") + "\n\r\n  \n"
		chunk(item[:7])
		chunk(item[7:])
		if answers == nil {
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.True(t, err == nil && res.Header.Get("Content-Type") == "application/x-ndjson", "got %v %v", res, err)
			defer func() { _ = res.Body.Close() }()
			answers = bufio.NewReader(res.Body)
		}
		line, err := answers.ReadString('\n')
		got := wiretest.Decode[result](t, line)
		require.True(t, err == nil && got.Status == 200 && got.Sequence == n+2, "line %d: got %+v %v", n, got, err)
	}
	send("0\r\n\r\n")
	rest, err := io.ReadAll(answers)
	assert.True(t, err == nil && len(rest) == 0, "behind the last line: got %q %v", rest, err)
}

// bodiesEndEarly: nothing of an array is done, and a line is done when it is whole, as the last one is at the end of the body.
func bodiesEndEarly(t *testing.T, s *scene) {
	r := s.ann.Create(t, "order", "").Record(t)
	item := wiretest.EventBody("order", r.ID, "note", "")
	head := "POST " + wiretest.Root + "/events HTTP/1.1\r\nHost: x\r\n" + s.ann.Credential[0] + "\r\n"
	for _, text := range []string{"Content-Length: 5000\r\n\r\n[" + item, "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n[%s]\r\n", len(item)+2, item)} {
		for _, a := range s.Raw(t, head+text) {
			a.WantFault(t, 400, "InvalidContent")
		}
	}
	s.unchanged(t, r)
	for _, text := range []string{
		fmt.Sprintf("Content-Length: %d\r\n\r\n%s\n%s", 2*len(item)+2, item, item),
		fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\n\r\nzz\r\n", len(item)+1, item),
	} {
		answers := s.Raw(t, head+lines+"\r\n"+text)
		require.Len(t, answers, 1)
		wantStatuses(t, text, resultLines(t, answers[0]), 200, 400)
	}
	assert.Len(t, s.ann.Load(t, "order", r.ID).Record(t).History, 3)
}

func numberOfItems(t *testing.T, s *scene) {
	a := s.ann.Post(t, wiretest.Root+"/events", " [ ] ")
	assert.True(t, a.Status == 200 && a.Body == `{"results":[]}`, "no item: got %d %s", a.Status, a.Body)
	a = s.ann.postLines(t, "\n")
	assert.True(t, a.Status == 200 && a.Body == "", "no line: got %d %s", a.Status, a.Body)
	many := strings.Repeat("1,           ", 9_999) // NB: with blanks, so that nobody compares so many with their schema
	assert.Len(t, readBatch(t, s.ann.Post(t, wiretest.Root+"/events", "["+many+"1]")), 10_000)
	s.ann.Post(t, wiretest.Root+"/events", "["+many+"1,1]").WantFault(t, 413, "TooLarge")
	many = strings.Repeat("1           \n", 10_000)
	got := resultLines(t, s.ann.postLines(t, many))
	assert.True(t, len(got) == 10_000 && got[9_999].Status == 400, "got %d results", len(got))
	s.ann.postLines(t, many+"1\n1\n", "Idempotency-Key: many").WantFault(t, 413, "TooLarge")
	got = resultLines(t, s.ann.postLines(t, many+"1\n1\n"))
	assert.True(t, len(got) == 10_001 && got[10_000].Status == 413, "got %d results", len(got))
}

func sizeOfBatch(t *testing.T, s *scene) {
	r := s.ann.Create(t, "order", "").Record(t)
	item := wiretest.EventBody("order", r.ID, "note", "")
	blanks := strings.Repeat(strings.Repeat(" ", 1<<16-1)+"\n", 256)
	const most = 16 << 20
	array := "[" + item + "]"
	wantStatuses(t, "largest array", readBatch(t, s.ann.Post(t, wiretest.Root+"/events", blanks[:most-len(array)]+array)), 200)
	s.ann.Post(t, wiretest.Root+"/events", blanks[:most+1-len(array)]+array).WantFault(t, 413, "TooLarge")
	text := item + "\n"
	wantStatuses(t, "largest lines", resultLines(t, s.ann.postLines(t, text+blanks[:most-2*len(text)]+"\n"+text[:len(text)-1])), 200, 200)
	wantStatuses(t, "too many bytes", resultLines(t, s.ann.postLines(t, text+blanks[:most-2*len(text)]+"\n"+text)), 200, 413)
	got := s.ann.Load(t, "order", r.ID).Record(t)
	assert.Len(t, got.History, 5, "the instance is %s", got.Text)
}

func leavingBatch(t *testing.T, s *scene) {
	r := s.ann.Create(t, "order", "").Record(t)
	text := strings.Repeat(wiretest.EventBody("order", r.ID, "note", "")+"\n", 5)
	conn, err := s.Dial()
	require.NoError(t, err)
	_, err = io.WriteString(conn, "POST "+wiretest.Root+"/events HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n"+s.ann.Credential[0]+"\r\n"+lines+"\r\n\r\n"+text)
	require.NoError(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	answers := bufio.NewReader(res.Body)
	for n := range 5 {
		line, err := answers.ReadString('\n')
		require.NoError(t, err, "line %d: %q", n, line)
	}
	_ = conn.Close()
	got := s.ann.Load(t, "order", r.ID).Record(t)
	assert.Len(t, got.History, 6, "the instance is %s", got.Text)
}

// TestABatchCountsEachItemOnce towards quotas, however often it finds no room.
func TestABatchCountsEachItemOnce(t *testing.T) {
	at := time.Now()
	s := sceneOf(startService(t, serviceOptions{Options: actorstest.Options{
		Files: flows(), Clock: func() time.Time { return at },
		Workflow: workflow.Options{InstanceInFlightMax: 2, Quotas: quota.Limits{EventsPerSecond: 10}},
	}}))
	r := s.ann.Create(t, "order", "").Record(t)
	items := slices.Repeat([]string{wiretest.EventBody("order", r.ID, "note", "")}, 11)
	wantStatuses(t, "as many as one second has, and one more", s.ann.sendBatch(t, items), 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 429)
}

// TestABatchIsItsItems holds gateway/INTERFACE.md, "Batches": a batch leaves the same
// instances and gives the same results as its items one by one.
func TestABatchIsItsItems(t *testing.T) {
	s := newScene(t)
	rapid.Check(t, func(rt *rapid.T) {
		var single, many []string
		for range 3 {
			single = append(single, s.ann.Create(t, "order", "").Record(t).ID)
			many = append(many, s.ann.Create(t, "order", "").Record(t).ID)
		}
		var alone []result
		var items []string
		for range rapid.IntRange(1, 12).Draw(rt, "items") {
			n := rapid.IntRange(0, 2).Draw(rt, "instance")
			event := rapid.SampledFrom([]string{"pay", "note", "leap", "submit", "reject", "ping", "unknown"}).Draw(rt, "event")
			id := ""
			if k := rapid.IntRange(0, 6).Draw(rt, "id"); k > 0 {
				id = fmt.Sprintf(`,"id":"k%d"`, k)
			}
			body := func(instance string) string {
				return `{"workflowId":"order","instanceId":"` + instance + `","event":{"name":"` + event + `","data":{"n":1}` + id + `}}`
			}
			a := s.ann.Post(t, wiretest.Root+"/event", body(single[n]))
			r := result{Status: a.Status, Error: a.Label(), Message: a.Message()}
			if a.Status == 200 {
				r = result{Status: 200, WorkflowID: "order", InstanceID: many[n], Sequence: len(a.Record(t).History)}
			}
			alone = append(alone, r)
			items = append(items, body(many[n]))
		}
		send := s.ann.sendBatch
		if rapid.Bool().Draw(rt, "lines") {
			send = s.ann.sendLines
		}
		got := send(t, items)
		require.True(rt, slices.Equal(got, alone), "got %+v, alone %+v", got, alone)
		for n := range single {
			require.Equal(rt, s.stripped(t, single[n]), s.stripped(t, many[n]))
		}
	})
}

// stripped is an instance of "order" without its id and times.
func (s *scene) stripped(t testing.TB, id string) string {
	r := s.ann.Load(t, "order", id).Record(t)
	for i := range r.History {
		r.History[i].TS = ""
	}
	text, err := json.Marshal([]any{r.Public, r.Private, r.States, r.History})
	require.NoError(t, err)
	return string(text)
}
