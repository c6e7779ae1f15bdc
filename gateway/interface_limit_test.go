package gateway_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/actors/migration"
	"troupe/actors/outbox"
	"troupe/actors/workflow"
	"troupe/gateway"
	"troupe/gateway/wiretest"
)

// inputRow is a row of gateway/INTERFACE.md, "Limits of inputs".
type inputRow struct{ input, most, beyond string }

// number is how much the row allows; false when it is no figure.
func (r inputRow) number() (int64, bool) {
	m := regexp.MustCompile(`^([0-9,]+)(?: (KiB|MiB))?`).FindStringSubmatch(r.most)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(m[1], ",", ""), 10, 64)
	return n << map[string]int{"": 0, "KiB": 10, "MiB": 20}[m[2]], err == nil
}

// status is what the row answers beyond the limit; 0 when that is no status.
func (r inputRow) status() int {
	n, _ := strconv.Atoi(strings.TrimPrefix(regexp.MustCompile(`^[0-9]{3}\b`).FindString(r.beyond), " "))
	return n
}

func inputRows(t *testing.T) (rows []inputRow) {
	t.Helper()
	text, err := os.ReadFile("INTERFACE.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "\n### Limits of inputs\n")
	section, _, _ = strings.Cut(section, "\n### ")
	for text := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(text), "|"), " | ")
		if len(cells) == 3 && !strings.HasPrefix(text, "|---") {
			rows = append(rows, inputRow{strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])})
		}
	}
	return rows[1:] // the head
}

// heldElsewhere has the rows with a figure that a test of another package holds, and which.
var heldElsewhere = map[string]string{
	"id of a workflow, instance, form, role, user or incident": "statemachine: TestNamesThatAreNoIdentifiers",
	"password of a sign-in":             "actors/identity: TestPasswordRules",
	"digits of an exponent in a number": "statemachine/data: TestClean",
	"name of an event":                  "statemachine: TestNamesThatAreNoIdentifiers",
	"data of an event in the history":   "TestInterface/history",
	"file of a template; its [content](#what-is-not-a-template) is limited too": "actors/template: TestTortureReport",
	"workflows that a user was the first to publish":                            "actors/catalog: TestAPublisherHasABound",
	"versions of a published workflow":                                          "actors/catalog: TestAPublisherHasABound",
	"published home, entries":                                                   "actors/home: TestUnpackRefusesWhatIsNoHome",
}

// TestTheLimitsOfTheDocument: each limit of the table is tried, at the limit and one above, or compared with the program.
func TestTheLimitsOfTheDocument(t *testing.T) {
	s := newScene(t)
	r := s.ann.Create(t, "plain", "").Record(t)
	get := func(path string) func(int) int {
		return func(n int) int { return s.adm.Get(t, wiretest.Root+path+strings.Repeat("x", n)).Status }
	}
	event := func(n int, headers ...string) int {
		body := wiretest.EventBody("plain", r.ID, "note", "")
		return s.ann.Post(t, wiretest.Root+"/event", body+strings.Repeat(" ", max(0, n-len(body))), headers...).Status
	}
	tries := map[string]func(n int) int{
		"`Idempotency-Key`, `event.id`": func(n int) int { return event(0, "Idempotency-Key: "+strings.Repeat("x", n)) },
		"`If-Match`, entity tags in it": func(n int) int { return event(0, "If-Match: "+strings.TrimSuffix(strings.Repeat(`"0",`, n), ",")) },
		"`Last-Event-ID`": func(n int) int {
			return s.ann.Send(t, request{Method: http.MethodHead, Path: wiretest.Root + "/watch/plain", Headers: append([]string{"Last-Event-ID: " + strings.Repeat("x", n)}, s.ann.Credential...)}).Status
		},
		"body with a credential": func(n int) int { return event(n) },
		"body without one, such as that of a sign-in": func(n int) int {
			body := `{"user":"nobody","password":"x"}`
			return s.Send(t, request{Method: http.MethodPost, Path: s.Base + "/session", Headers: []string{wiretest.JSONType}, Body: body + strings.Repeat(" ", n-len(body))}).Status
		},
		"objects and arrays inside each other, in any body": func(n int) int {
			deep := strings.Repeat(`{"a":`, n-2) + "1" + strings.Repeat("}", n-2) // in the body and in its data
			return s.ann.Create(t, "plain", `{"svcPublic":`+deep+`}`).Status
		},
		"text of a comment": func(n int) int {
			return s.ann.Post(t, wiretest.Root+"/instance/plain/"+r.ID+"/comments", `{"text":"`+strings.Repeat("ä", n)+`"}`).Status
		},
		"`filter`; further limits in [statemachine/filter/FILTER.md](../statemachine/filter/FILTER.md#limits)": func(n int) int {
			filter := `{"svcPublic.a":"` + strings.Repeat("x", n-len(`{"svcPublic.a":""}`)) + `"}`
			return s.ann.Get(t, wiretest.Root+"/instances/plain?filter="+url.QueryEscape(filter)).Status
		},
		"`q` of tasks and of forms": get("/tasks?q="),
		"`limit` of any page": func(n int) int {
			return s.ann.Get(t, fmt.Sprintf("%s/instances/plain?limit=%d", wiretest.Root, n)).Status
		},
		"`wait` of the feed of changes, in seconds": func(n int) int {
			return s.ann.Get(t, fmt.Sprintf("%s/changes?since=0&limit=1&wait=%d", wiretest.Root, n)).Status
		},
		"`extension` of files": func(n int) int {
			return s.ann.Get(t, "/repository/api/v1/list-files?extension="+strings.Repeat("x", n)).Status
		},
	}
	known := gateway.InputLimits()
	var o workflow.Options
	o.EnsureDefaults()
	var credentials identity.Options
	credentials.EnsureDefaults()
	known["sessions of a user"] = int64(credentials.SessionsPerUserMax)
	known["sessions and tokens of all"] = int64(credentials.CredentialsMax)
	known["instances of one request for a migration"] = migration.PageMax
	known["answer of a webhook that an event gets"] = outbox.AnswerBytesMax
	known["requests at instances (`inFlightMax`)"] = int64(o.InFlightMax)
	known["requests at one instance (`instanceInFlightMax`)"] = int64(o.InstanceInFlightMax)
	known["instances of a [tree](#trees-of-instances) that run (`treeInstancesMax`)"] = int64(o.TreeInstancesMax)
	known["time of a query (`queryTimeMax`), in seconds"] = int64(o.QueryTimeMax.Seconds())
	for _, row := range inputRows(t) {
		n, isFigure := row.number()
		_, held := heldElsewhere[row.input]
		if try := tries[row.input]; try != nil {
			delete(tries, row.input)
			at, above := try(int(n)), try(int(n)+1)
			assert.True(t, isFigure && at != row.status() && above == row.status(), "%v %v %v %v %v %v", row.input, at, n, above, row.most, row.beyond)
			held = true
		}
		if want, ok := known[row.input]; ok {
			delete(known, row.input)
			assert.Equal(t, want, n, "%s: the table says %s, the limit", row.input, row.most)
			held = true
		}
		assert.False(t, isFigure && !held, "%s: nothing holds the %s of the table", row.input, row.most)
	}
	for input := range tries {
		t.Errorf("the table has no row %q", input)
	}
	for input := range known {
		t.Errorf("the table has no row %q", input)
	}
}
