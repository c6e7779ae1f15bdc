package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/gateway/wiretest"
)

// TestInterfaceBodies holds gateway/INTERFACE.md, "Bodies", and gateway/INTERFACE.md,
// "Identifiers": what is wrong with a body is named, and nothing acts on it.
func TestInterfaceBodies(t *testing.T) {
	s := newScene(t)
	r := s.ann.Create(t, "plain", "").Record(t)
	depth := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	data := func(data string) string { return `{"workflowId":"plain","data":` + data + `}` }
	event := func(event string) string {
		return `{"workflowId":"plain","instanceId":"` + r.ID + `","event":` + event + `}`
	}
	good := wiretest.CreateBody("plain", `{"svcPublic":{"a":1},"svcPrivate":{"b":2}}`)
	const mostBytes = 1 << 20
	before, created, sent := len(s.instances(t, "plain")), 0, 0
	for _, c := range []struct {
		line    string
		route   string
		body    string
		status  int
		message string // a part of it
	}{
		{"as it should be", "create", good, 200, ""},
		{"white space everywhere", "create", "\r\n\t {\t\"workflowId\" : \"plain\" }\n ", 200, ""},
		{"the members in another order", "event", `{"event":{"data":{},"name":"go"},"instanceId":"` + r.ID + `","workflowId":"plain"}`, 200, ""},
		{"escapes in a key", "create", `{"workflow\u0049d":"plain"}`, 200, ""},
		{"depth 64", "create", data(`{"svcPublic":` + depth(62) + `}`), 200, ""},
		{"1 MiB", "create", good + strings.Repeat(" ", mostBytes-len(good)), 200, ""},

		// Package data knows what is JSON.
		{"nothing", "create", "", 400, "unexpected end"},
		{"depth 65", "create", data(`{"svcPublic":` + depth(63) + `}`), 400, "deeper than 64"},
		{"depth 100,000", "create", strings.Repeat("[", 100_000), 400, "deeper than 64"},
		{"duplicate keys", "create", `{"workflowId":"a","workflow\u0049d":"b"}`, 400, "workflowId"},
		{"duplicate keys in free-form data", "create", data(`{"svcPublic":{"a":1,"a":2}}`), 400, "a"},
		{"trailing data", "create", good + "x", 400, "after the value"},
		{"NUL behind it", "create", good + "\x00", 400, "after the value"},
		{"a byte order mark", "create", "\xef\xbb\xbf" + good, 400, ""},
		{"no UTF-8", "create", "{\"workflowId\":\"\xff\"}", 400, "UTF-8"},
		{"a lone surrogate", "event", event(`{"name":"go","data":{"a":"\ud800"}}`), 400, "surrogate"},
		{"a number with a leading zero", "event", event(`{"name":"go","data":{"a":01}}`), 400, "0"},
		{"an array", "create", `[]`, 400, "must be a JSON object"},
		{"null", "event", `null`, 400, "must be a JSON object"},

		{"another case of a key", "create", `{"WORKFLOWID":"plain"}`, 400, `it is written "workflowId"`},
		{"another case beside the right one", "create", `{"workflowId":"plain","WorkflowId":"codes"}`, 400, "WorkflowId"},
		{"create without workflowId", "create", `{"data":{}}`, 400, `"workflowId" is missing`},
		{"create with null as workflowId", "create", `{"workflowId":null}`, 400, `"workflowId" must be a string, not null`},
		{"create with a number as workflowId", "create", `{"workflowId":1}`, 400, `"workflowId" must be a string, not a number`},
		{"create with an unknown member", "create", `{"workflowId":"plain","states":[]}`, 400, `unknown member "states"`},
		{"create with null as data", "create", data(`null`), 400, `"data" must be an object, not null`},
		{"create with an array as data", "create", data(`[]`), 400, `"data" must be an object, not an array`},
		{"create with data._id", "create", data(`{"_id":"x"}`), 400, `unknown member "data._id"`},
		{"create with data.svcHistory", "create", data(`{"svcPublic":{},"svcHistory":[]}`), 400, `unknown member "data.svcHistory"`},
		{"create with a string as svcPublic", "create", data(`{"svcPublic":"x"}`), 400, `"data.svcPublic" must be an object, not a string`},
		{"create with null as svcPrivate", "create", data(`{"svcPrivate":null}`), 400, `"data.svcPrivate" must be an object, not null`},

		{"event without workflowId", "event", `{"instanceId":"i","event":{"name":"go"}}`, 400, `"workflowId" is missing`},
		{"event without instanceId", "event", `{"workflowId":"plain","event":{"name":"go"}}`, 400, `"instanceId" is missing`},
		{"event without event", "event", `{"workflowId":"plain","instanceId":"` + r.ID + `"}`, 400, `"event" is missing`},
		{"event without a name", "event", event(`{}`), 400, `"event.name" is missing`},
		{"event with null as event", "event", event(`null`), 400, `"event" must be an object, not null`},
		{"event with a string as event", "event", event(`"go"`), 400, `"event" must be an object, not a string`},
		{"event with a number as name", "event", event(`{"name":1}`), 400, `"event.name" must be a string, not a number`},
		{"event with a long name", "event", event(`{"name":"` + strings.Repeat("g", 100_000) + `"}`), 400, ""},
		{"event with null as data", "event", event(`{"name":"go","data":null}`), 400, `"event.data" must be an object, not null`},
		{"event with an array as data", "event", event(`{"name":"go","data":[1]}`), 400, `"event.data" must be an object, not an array`},
		{"event with an unknown member", "event", event(`{"name":"go","user":"bob"}`), 400, `unknown member "event.user"`},
		{"event with an empty id", "event", event(`{"name":"go","id":""}`), 400, `"event.id" must have 1 to 255`},
		{"event with a number as id", "event", event(`{"name":"go","id":7}`), 400, `"event.id" must be a string, not a number`},
		{"event with the data of create", "event", good, 400, `unknown member "data"`},

		{"an empty workflowId", "create", `{"workflowId":""}`, 404, ""},
		{"a workflowId of dots", "create", `{"workflowId":".."}`, 404, ""},
		{"an instanceId with a slash", "event", `{"workflowId":"plain","instanceId":"a/b","event":{"name":"go"}}`, 404, ""},
		{"an instanceId with NUL", "event", `{"workflowId":"plain","instanceId":"a\u0000b","event":{"name":"go"}}`, 404, ""},
		{"an instanceId in another case", "event", `{"workflowId":"plain","instanceId":"` + strings.ToLower(r.ID) + `","event":{"name":"go"}}`, 404, ""},
		{"another workflow's instance", "event", `{"workflowId":"codes","instanceId":"` + r.ID + `","event":{"name":"next"}}`, 404, ""},
		{"what is malformed comes before what is not there", "event", `{"workflowId":"..","instanceId":"i","event":{}}`, 400, `"event.name" is missing`},

		{"1 MiB and one byte", "create", good + strings.Repeat(" ", mostBytes-len(good)+1), 413, "1048576"},
		{"10 MiB", "event", strings.Repeat(" ", 10*mostBytes), 413, "1048576"},
	} {
		a := s.ann.Post(t, wiretest.Root+"/"+c.route, c.body)
		if c.status == 200 {
			a.Record(t)
			if c.route == "create" {
				created++
			} else {
				sent++
			}
			continue
		}
		word := map[int]string{400: "InvalidContent", 404: "NotFound", 413: "TooLarge"}[c.status]
		reason := a.FaultReason(c.status, word)
		assert.True(t, reason == "" && strings.Contains(a.Message(), c.message), "%v %v %v %v %v %v", c.line, a.Status, a.Body, c.status, c.message, reason)
	}
	s.wantInstances(t, "plain", before, created)
	assert.Len(t, s.ann.Load(t, "plain", r.ID).Record(t).History, 1+sent, "history")
}

// TestInterfaceIdentifiers holds gateway/INTERFACE.md, "Identifiers".
func TestInterfaceIdentifiers(t *testing.T) {
	s := newScene(t)
	longest := "L" + strings.Repeat("-._~", 31) + "xyz"
	s.Write("workflows/longest.yaml", strings.Replace(flows()["workflows/plain.yaml"], "id: plain", "id: "+longest, 1))
	r := s.ann.Create(t, longest, "").Record(t)
	s.unchanged(t, r)
	s.ann.Load(t, longest+"x", r.ID).WantFault(t, 404, "NotFound")
}

// TestInterfaceContentTypes holds gateway/INTERFACE.md, "Content types": wrong types,
// tricks with charsets, packed bodies.
func TestInterfaceContentTypes(t *testing.T) {
	s := newScene(t)
	for _, c := range []struct {
		header string
		status int
	}{
		{"X-None: of them", 200},
		{"Content-Type: application/json", 200},
		{"Content-Type: application/json;charset=UTF-8", 200},
		{`Content-Type: application/json; charset="utf-8"`, 200},
		{"Content-Type: Application/JSON", 200},
		{"Content-Type: application/json; profile=x", 200},
		{"Content-Type: application/json; charset=utf-16", 415},
		{"Content-Type: application/json; charset=", 415},
		{"Content-Type: application/json; charset=utf-8; charset=utf-16", 415},
		{"Content-Type: application/jsonx", 415},
		{"Content-Type: application/problem+json", 415},
		{"Content-Type: text/plain", 415},
		{"Content-Type: application/x-www-form-urlencoded", 415},
		{"Content-Type: multipart/form-data; boundary=x", 415},
		{"Content-Type: application/json, text/plain", 415},
		{"Content-Type: ", 415},
		{"Content-Type: application/json\r\nContent-Type: application/json", 415},
		{"Content-Encoding: Identity", 200},
		{"Content-Encoding: gzip", 415},
		{"Content-Encoding: identity, gzip", 415},
		{"Content-Encoding: ", 415},
	} {
		a := s.Send(t, request{Method: "POST", Path: wiretest.Root + "/create", Headers: append([]string{c.header}, s.ann.Credential...), Body: wiretest.CreateBody("plain", "")})
		if c.status == 200 {
			a.Record(t)
		} else if reason := a.FaultReason(c.status, "UnsupportedMediaType"); reason != "" {
			t.Errorf("%s: %s", c.header, reason)
		}
	}
	a := s.Send(t, request{Method: "GET", Path: wiretest.Root + "/choices", Headers: append([]string{"Content-Type: text/plain"}, s.ann.Credential...), Body: "whatever"})
	a.WantStatus(t, 200)
}

// quoted is a JSON string.
func quoted(s string) string {
	text, _ := json.Marshal(s) // no string makes this fail
	return string(text)
}

// TestInterfaceMessages holds gateway/INTERFACE.md, "Messages": at most 64 escaped
// characters of raw input.
func TestInterfaceMessages(t *testing.T) {
	s := newScene(t)
	long := strings.Repeat("Ä\x1b[31m\n\u202e\x7f<b>", 500)
	r := s.ann.Create(t, "plain", "").Record(t)
	for name, a := range map[string]answer{
		"member":       s.ann.Post(t, wiretest.Root+"/create", `{"workflowId":"plain",`+quoted(long)+`:1}`),
		"data member":  s.ann.Create(t, "plain", `{`+quoted(long)+`:1}`),
		"workflow":     s.ann.Post(t, wiretest.Root+"/create", `{"workflowId":`+quoted(long)+`}`),
		"event":        s.ann.Post(t, wiretest.Root+"/event", fmt.Sprintf(`{"workflowId":"plain","instanceId":"%s","event":{"name":%s}}`, r.ID, quoted(long))),
		"not JSON":     s.ann.Post(t, wiretest.Root+"/create", long),
		"duplicate":    s.ann.Post(t, wiretest.Root+"/create", `{`+quoted(long)+`:1,`+quoted(long)+`:2}`),
		"filter":       s.ann.query(t, "plain", filterOf(`{`+quoted(long)+`:1}`)),
		"operator":     s.ann.query(t, "plain", filterOf(`{"svcPublic.x":{"$`+long[:40]+strings.Repeat("x", 300)+`":1}}`)),
		"parameter":    s.ann.query(t, "plain", escape(long)+"=1"),
		"content type": s.ann.with("Content-Type: "+strings.Repeat("x", 500)).Post(t, wiretest.Root+"/create", "{}"),
		"key":          s.ann.Create(t, "plain", "", retryKey(strings.Repeat("x", 500))),
	} {
		assert.True(t, a.Status >= 400 && a.Status < 500, "%s: got %d, want a refusal", name, a.Status)
		message := a.Message()
		assert.True(t, !strings.ContainsAny(message, "\x1b\n\u202e\x7f") && !strings.Contains(message, strings.Repeat("x", 65)) && len(message) <= 300,
			"%s: the message repeats too much, or raw input: %q", name, message)
	}
}
