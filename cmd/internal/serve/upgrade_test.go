package serve

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/homedir"
)

// keep makes a new folder of testdata/homes (README.md there).
var keep = flag.String("keep", "", "name of a new folder of testdata/homes, such as format-1-0.1.0")

const (
	homesFolder  = "../../troupe/testdata/homes"
	newHome      = "new" // the text files of the next one
	expectedFile = "expected.json"
)

// expected is what a release said of the home that it left.
type expected struct {
	Token     string     `json:"token"` // Bob's, without an end
	Instances []kept     `json:"instances"`
	Reads     []exchange `json:"reads"`   // later releases may add members to the answers
	Replays   []exchange `json:"replays"` // with their idempotency keys; the same forever
}

// kept is one instance, and an event that it takes.
type kept struct {
	Workflow string `json:"workflow"`
	ID       string `json:"id"`
	Record   string `json:"record"` // GET instance
	Sequence int    `json:"sequence"`
	Event    string `json:"event"` // the body's event
}

// exchange is one request with its answer, by token, or by Ann's session.
type exchange struct {
	Session bool   `json:"session,omitempty"`
	Method  string `json:"method"`
	Path    string `json:"path"`
	Key     string `json:"key,omitempty"`
	Body    string `json:"body,omitempty"`
	Answer  string `json:"answer"`
}

// TestHomesOfEarlierReleases: what a release has written is read by all later ones,
// and goes on.
func TestHomesOfEarlierReleases(t *testing.T) {
	if *keep != "" {
		keepHome(t, filepath.Join(homesFolder, *keep))
	}
	homes, err := filepath.Glob(filepath.Join(homesFolder, "format-*"))
	require.NoError(t, err)
	present := filepath.Join(t.TempDir(), "present") // as this program leaves it
	keepHome(t, present)
	of := formatOf(t, present)
	assert.True(t, slices.ContainsFunc(homes, func(home string) bool { return formatOf(t, home) == of }), "no home is kept of the present format: %s; see testdata/homes/README.md", of)
	for _, home := range append(homes, present) {
		t.Run(filepath.Base(home), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(home, expectedFile))
			require.NoError(t, err)
			var want expected
			require.NoError(t, json.Unmarshal(text, &want))
			dir := copyHome(t, home)
			r := runHome(t, dir, never)
			r.token = want.Token
			r.readsAsBefore(&want)
			r.listsAsBefore(&want, false)
			r.goesOn(&want)
			r.stop()
			r = runHome(t, dir, 1)
			r.token = want.Token
			r.repeats(want.Replays)
			r.listsAsBefore(&want, true)
			r.stop()
		})
	}
}

// formatOf is the line of the store's FORMAT file that has the number.
func formatOf(t *testing.T, home string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(homedir.Data(home), "FORMAT"))
	require.NoError(t, err)
	return strings.Split(string(text), "\n")[1]
}

func copyHome(t *testing.T, home string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "home")
	require.NoError(t, os.CopyFS(dir, os.DirFS(home)))
	err := os.Chmod(homedir.Data(dir), 0o700)
	require.False(t, err != nil && !os.IsNotExist(err), err)
	return dir
}

// running is the program on a home.
type running struct {
	*service
	t              *testing.T
	log            strings.Builder
	token, session string
}

// never is after what time forms are archived in a run, unless they are.
const never = 100 * 365 * 24 * time.Hour

func runHome(t *testing.T, dir string, archiveAfter time.Duration) *running {
	t.Helper()
	r := &running{service: newService(dir), t: t}
	r.config.Portal.ArchiveAfter = archiveAfter
	r.service.log = zerolog.New(&r.log).Level(zerolog.WarnLevel)
	r.config.Store.Shards = 0 // as the release had it
	if err := r.start(t.Context()); err != nil {
		_ = r.service.stop()
		t.Fatalf("start on %s: %v\n%s", dir, err, r.log.String())
	}
	var err error
	r.session, _, err = r.identities.Create(t.Context(), identity.Session, identity.CreateCredential{User: "ann"})
	require.NoError(t, err)
	return r
}

func (r *running) stop() {
	r.t.Helper()
	assert.NoError(r.t, r.service.stop())
	for line := range strings.Lines(r.log.String()) {
		assert.True(r.t, ofTheMachine.MatchString(line), "the log has %s", line)
	}
}

// ofTheMachine matches warnings that say nothing about the program.
var ofTheMachine = regexp.MustCompile(`"message":"(slow disk operation|this file system locks no folders|disk space is running low)`)

func (r *running) ask(e exchange) (status int, body string) {
	r.t.Helper()
	request := httptest.NewRequestWithContext(r.t.Context(), e.Method, e.Path, strings.NewReader(e.Body))
	if e.Session {
		request.AddCookie(&http.Cookie{Name: "session", Value: r.session})
	} else {
		request.Header.Set("Authorization", "svc.token "+r.token)
	}
	if e.Body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if e.Key != "" {
		request.Header.Set("Idempotency-Key", e.Key)
	}
	answer := httptest.NewRecorder()
	r.gateway.ServeHTTP(answer, request)
	return answer.Code, answer.Body.String()
}

func (r *running) must(e exchange) (answer string) {
	r.t.Helper()
	status, answer := r.ask(e)
	require.Equal(r.t, http.StatusOK, status, "%v %v %v %v", e.Method, e.Path, e.Body, answer)
	return answer
}

const workflowRoot = "/workflow/api/v1"

func instancePath(workflow, id string) string {
	return workflowRoot + "/instance/" + workflow + "/" + id
}

func (r *running) record(workflow, id string) string {
	r.t.Helper()
	return r.must(exchange{Method: http.MethodGet, Path: instancePath(workflow, id)})
}

func (r *running) readsAsBefore(want *expected) {
	r.t.Helper()
	for _, i := range want.Instances {
		assert.Equal(r.t, i.Record, r.record(i.Workflow, i.ID), "%v %v", i.Workflow, i.ID)
	}
	for _, e := range want.Reads {
		status, got := r.ask(e)
		assert.True(r.t, status == http.StatusOK && covers(decoded(r.t, got), decoded(r.t, e.Answer)), "%s: got %d\n%s\nwant at least\n%s", e.Path, status, got, e.Answer)
	}
	r.repeats(want.Replays)
}

// listsAsBefore compares the six lists with the forms as the release showed each. archived
// says that those are in the archive now that were completed.
func (r *running) listsAsBefore(want *expected, archived bool) {
	r.t.Helper()
	lists := map[string][]map[string]any{}
	for _, e := range want.Reads {
		read, _ := decoded(r.t, e.Answer).(map[string]any)
		form, ok := read["form"].(map[string]any)
		if !ok {
			continue
		}
		kind, category := "forms", read["category"]
		if form["formType"] == "Checklist" {
			kind = "checklists"
		}
		if archived && category == "submitted" && form["formType"] != "WorkflowForm" { // leave waits for a judge
			category = "archived"
		}
		path := fmt.Sprintf("/form-portal/%s/my%s", kind, category)
		lists[path] = append(lists[path], form)
	}
	for _, kind := range []string{"forms", "checklists"} {
		for _, category := range []string{"current", "submitted", "archived"} {
			path := fmt.Sprintf("/form-portal/%s/my%s", kind, category)
			slices.SortFunc(lists[path], func(a, b map[string]any) int {
				return cmp.Or(-cmp.Compare(fmt.Sprint(a["when"]), fmt.Sprint(b["when"])), cmp.Compare(fmt.Sprint(a["id"]), fmt.Sprint(b["id"])))
			})
			whole := make([]any, len(lists[path]))
			for n, form := range lists[path] {
				whole[n] = form
			}
			answer := r.must(exchange{Session: true, Method: http.MethodGet, Path: path})
			assert.True(r.t, covers(decoded(r.t, answer), whole), "%s: got\n%s\nwant at least\n%v", path, answer, whole)
			delete(lists, path)
		}
	}
	assert.Empty(r.t, lists, "no list has %v", lists)
}

func decoded(t *testing.T, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	require.NoError(t, d.Decode(&v), text)
	return v
}

// covers reports whether got has everything that want has. Lists are the same.
func covers(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		of, ok := got.(map[string]any)
		for key, member := range want {
			ok = ok && covers(of[key], member)
		}
		return ok
	case []any:
		of, ok := got.([]any)
		ok = ok && len(of) == len(want)
		for n := 0; ok && n < len(want); n++ {
			ok = covers(of[n], want[n])
		}
		return ok
	}
	return got == want
}

func (r *running) repeats(exchanges []exchange) {
	r.t.Helper()
	for _, e := range exchanges {
		status, got := r.ask(e)
		assert.True(r.t, status == http.StatusOK && got == e.Answer, "%s %s %s %s: got %d\n%s\nwant\n%s", e.Method, e.Path, e.Key, e.Body, status, got, e.Answer)
	}
}

func (r *running) goesOn(want *expected) {
	r.t.Helper()
	for _, i := range want.Instances {
		answer := r.must(exchange{Method: http.MethodPost, Path: workflowRoot + "/event", Body: eventBody(i.Workflow, i.ID, i.Event)})
		assert.Equal(r.t, i.Sequence+1, sequenceOf(answer), "%s/%s after %s", i.Workflow, i.ID, i.Event)
		got, before := historyOf(r.t, r.record(i.Workflow, i.ID)), historyOf(r.t, i.Record)
		assert.True(r.t, strings.HasPrefix(got, strings.TrimSuffix(before, "]")), "%s/%s: the history was\n%s\nand is\n%s", i.Workflow, i.ID, before, got)
	}
}

func eventBody(workflow, id, event string) string {
	return fmt.Sprintf(`{"workflowId":%q,"instanceId":%q,"event":%s}`, workflow, id, event)
}

func historyOf(t *testing.T, record string) string {
	t.Helper()
	var r struct {
		History json.RawMessage `json:"svcHistory"`
	}
	require.NoError(t, json.Unmarshal([]byte(record), &r), record)
	return string(r.History)
}

func sequenceOf(record string) int { return strings.Count(record, `"transitionEvent":`) }

// keepHome makes a home with the present program, and what it says of it.
func keepHome(t *testing.T, folder string) {
	if _, err := os.Stat(folder); err == nil {
		t.Fatalf("%s is there; what a release has written is never made again", folder)
	}
	dir := copyHome(t, filepath.Join(homesFolder, newHome))
	k := &keeper{running: runHome(t, dir, never)}
	secret, _, err := k.identities.Create(t.Context(), identity.Token, identity.CreateCredential{User: "bob", Note: "of " + filepath.Base(folder)})
	require.NoError(t, err)
	k.token, k.want.Token = secret, secret
	k.firstHalf()
	k.stop()
	// Another start, so that there are tables as well as logs, and a second version.
	clitest.Edit(t, dir, "workflows/door.yaml", "version: 1", "version: 2")
	clitest.Edit(t, dir, "workflows/door.yaml", "knock: {}", "knock: {}, ring: {}")
	k.running = runHome(t, dir, never)
	k.token = secret
	k.secondHalf()
	k.note()
	k.stop()
	text, err := json.MarshalIndent(k.want, "", "  ")
	require.NoError(t, err)
	clitest.PutFile(t, dir, expectedFile, string(text)+"\n")
	clitest.RemoveFile(t, dir, homedir.GitIgnoreFile) // it would keep the store out of git here
	require.NoError(t, os.CopyFS(folder, os.DirFS(dir)))
}

// keeper makes a home.
type keeper struct {
	*running
	want expected
}

var taskOfList = regexp.MustCompile(`"taskId":"([^"]+)"`)

var idOfRecord = regexp.MustCompile(`"_id":"([^"]+)"`)

// make creates an instance, sends it events, and notes the one that comes next.
func (k *keeper) make(workflow, data, next string, events ...string) (id string) {
	k.t.Helper()
	id = idOfRecord.FindStringSubmatch(k.must(exchange{
		Method: http.MethodPost, Path: workflowRoot + "/create", Body: fmt.Sprintf(`{"workflowId":%q,"data":{"svcPublic":%s}}`, workflow, data),
	}))[1]
	for _, event := range events {
		k.must(exchange{Method: http.MethodPost, Path: workflowRoot + "/event", Body: eventBody(workflow, id, named(event))})
	}
	k.want.Instances = append(k.want.Instances, kept{Workflow: workflow, ID: id, Event: named(next)})
	return id
}

func named(event string) string {
	if strings.HasPrefix(event, "{") {
		return event
	}
	return fmt.Sprintf(`{"name":%q}`, event)
}

// once makes a request under a key, which is replayed later.
func (k *keeper) once(e exchange) (answer string) {
	k.t.Helper()
	e.Answer = k.must(e)
	k.want.Replays = append(k.want.Replays, e)
	return e.Answer
}

func (k *keeper) firstHalf() {
	const judge = `{"name":"judge","data":{"verdict":"no"}}`
	k.make("travel", `{}`, "plan")
	k.make("travel", `{"city":"Ravensburg","tags":["a","b"]}`, "next", "plan")
	k.make("travel", `{"city":"Lindau"}`, "resume", "plan", "next", "park")
	k.make("travel", `{"city":"Lindau"}`, "continue", "plan", "next", "park", "resume", "next", "park")
	k.make("travel", `{"city":"Ulm","tags":["b"]}`, "packed", "visa", "plan", "book", "paid")
	k.make("leave", `{"days":5}`, judge, `{"name":"submit","id":"e-1","data":{"days":6,"why":"ä€𝄞"}}`)
	k.make("leave", `{"days":7}`, "note", `{"name":"submit","data":{"days":9}}`, judge)
	k.make("door", `{}`, "knock", "loose", "quiet", "knock")
	for _, step := range []string{"knock", "open"} {
		id := k.want.Instances[len(k.want.Instances)-1].ID
		k.once(exchange{Method: http.MethodPost, Path: workflowRoot + "/event", Key: "key-" + step, Body: eventBody("door", id, named(step))})
	}
	k.want.Instances[len(k.want.Instances)-1].Event = named("shut")
	k.once(exchange{Method: http.MethodPost, Path: workflowRoot + "/create", Key: "key-create", Body: `{"workflowId":"travel","data":{"svcPublic":{"city":"Bregenz"}}}`})
}

func (k *keeper) secondHalf() {
	k.make("travel", `{"city":"Wangen"}`, "home", "plan", "book", "paid", "packed")
	k.make("door", `{}`, "ring", "ring")
	k.make("budget", `{"amount":5}`, `{"name":"comment","data":{"text":"b"}}`,
		`{"name":"comment","data":{"text":"a"}}`, `{"name":"rate","data":{"svcPrivate":{"seen":1}}}`)
	k.make("budget", `{"amount":5000}`, "spend", "spend")
	k.parcels()
	const makeForm, runtime = "/form-portal/forms/create", "/form-runtime/api/v1"
	draft := func(workflow, id, data string) {
		k.must(exchange{Session: true, Method: http.MethodPut, Path: runtime + "/draft/" + workflow + "/" + id, Body: `{"data":` + data + `}`})
	}
	form := func(path, body string) (id string) {
		return k.must(exchange{Session: true, Method: http.MethodPost, Path: path, Body: body})
	}
	reads := func(workflow, id string) {
		k.want.Reads = append(k.want.Reads, exchange{Session: true, Method: http.MethodGet, Path: runtime + "/form/" + workflow + "/" + id})
	}
	submit := func(workflow, id, data string) {
		k.once(exchange{
			Session: true, Method: http.MethodPost, Path: runtime + "/submit", Key: "key-" + id,
			Body: fmt.Sprintf(`{"workflowId":%q,"instanceId":%q,"data":%s}`, workflow, id, data),
		})
	}
	for _, f := range []struct{ path, body, workflow, draft, data string }{
		{makeForm, `{"formId":"feedback"}`, "-", `{"text":"half"}`, `{"text":"whole"}`},
		{makeForm, `{"formId":"leave-form","workflowId":"leave"}`, "leave", `{"days":"what does not fit yet"}`, `{"days":3}`},
		{"/form-portal/checklists/create", `{"checklistId":"safety"}`, "-", `{"light":true}`, `{"exits":true}`},
	} {
		begun, sent := form(f.path, f.body), form(f.path, f.body)
		draft(f.workflow, begun, f.draft)
		draft(f.workflow, sent, f.draft)
		submit(f.workflow, sent, f.data)
		reads(f.workflow, begun)
		reads(f.workflow, sent)
	}
	for _, filter := range []string{`{"svcPublic.city":"Lindau"}`, `{"svcPublic.tags":"b"}`, `{"states.nodeId":"details"}`} {
		k.want.Reads = append(k.want.Reads, exchange{Method: http.MethodGet, Path: workflowRoot + "/instances/travel?filter=" + url.QueryEscape(filter)})
	}
	k.want.Reads = append(k.want.Reads, exchange{Method: http.MethodGet, Path: workflowRoot + "/instances/leave?sort=-svcPublic.days&limit=10"})
}

// parcels have what happens on its own, and what people do with tasks.
func (k *keeper) parcels() {
	read := func(path string) {
		k.want.Reads = append(k.want.Reads, exchange{Method: http.MethodGet, Path: workflowRoot + path})
	}
	waiting, sent := k.make("parcel", `{"number":"p-1"}`, "pack"), k.make("parcel", `{"number":"p-2"}`, "note", "pack")
	task := taskOfList.FindStringSubmatch(k.must(exchange{Method: http.MethodGet, Path: workflowRoot + "/tasks?scope=all&workflowId=parcel"}))[1]
	k.must(exchange{Method: http.MethodPost, Path: workflowRoot + "/task", Body: `{"taskId":"` + task + `","action":"claim"}`})
	k.must(exchange{Method: http.MethodPost, Path: instancePath("parcel", waiting) + "/comments", Body: `{"text":"ä€𝄞"}`})
	gone := idOfRecord.FindStringSubmatch(k.must(exchange{Method: http.MethodPost, Path: workflowRoot + "/create", Body: `{"workflowId":"parcel","data":{"svcPublic":{"number":"p-3"}}}`}))[1]
	k.must(exchange{Method: http.MethodDelete, Path: instancePath("parcel", gone)})
	for _, path := range []string{
		"/tasks?scope=all&workflowId=parcel", "/timers?workflowId=parcel", "/instance/parcel/" + waiting + "/pending",
		"/instance/parcel/" + waiting + "/activity", "/instance/parcel/" + sent + "/pending", "/instances/parcel?filter=" + url.QueryEscape(`{"svcPublic.number":"p-2"}`),
	} {
		read(path)
	}
}

// note writes down what is answered now.
func (k *keeper) note() {
	for n := range k.want.Instances {
		i := &k.want.Instances[n]
		i.Record = k.record(i.Workflow, i.ID)
		i.Sequence = sequenceOf(i.Record)
	}
	for n := range k.want.Reads {
		k.want.Reads[n].Answer = k.must(k.want.Reads[n])
	}
}
