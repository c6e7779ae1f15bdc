package gateway

import (
	"strings"
	"testing"
)

// TestBodies holds gateway/INTERFACE.md, "Bodies", and gateway/INTERFACE.md,
// "Identifiers": the attacks on create and event.
func TestBodies(t *testing.T) {
	depth := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	event := func(event string) string { return `{"workflowId":"w","instanceId":"i","event":` + event + `}` }
	cases := []struct {
		line    string
		route   string
		body    string
		status  int
		message string // a part of it
	}{
		{"as it should be", "create", createBody, 200, ""},
		{"white space everywhere", "create", "\r\n\t {\t\"workflowId\" : \"w\" }\n ", 200, ""},
		{"the members in another order", "event", `{"event":{"data":{},"name":"n"},"instanceId":"i","workflowId":"w"}`, 200, ""},
		{"escapes in a key", "create", `{"workflow\u0049d":"w"}`, 200, ""},
		{"keys of other worlds", "create", `{"workflowId":"w","data":{"svcPublic":{"__proto__":1,"$where":2,"a.b":3,"":4}}}`, 200, ""},
		{"depth 64", "create", `{"workflowId":"w","data":{"svcPublic":` + depth(62) + `}}`, 200, ""},

		{"nothing", "create", "", 400, "unexpected end"},
		{"depth 65", "create", `{"workflowId":"w","data":{"svcPublic":` + depth(63) + `}}`, 400, "deeper than 64"},
		{"depth 100,000", "create", strings.Repeat("[", 100_000), 400, "deeper than 64"},
		{"duplicate keys", "create", `{"workflowId":"a","workflowId":"b"}`, 400, "workflowId"},
		{"duplicate keys after unescaping", "create", `{"workflowId":"a","workflow\u0049d":"b"}`, 400, "workflowId"},
		{"duplicate keys in free-form data", "create", `{"workflowId":"w","data":{"svcPublic":{"a":1,"a":2}}}`, 400, "a"},
		{"another case of a key", "create", `{"WORKFLOWID":"a"}`, 400, `it is written "workflowId"`},
		{"another case beside the right one", "create", `{"workflowId":"a","WorkflowId":"b"}`, 400, "WorkflowId"},
		{"trailing data", "create", createBody + "x", 400, "after the value"},
		{"a second value", "create", createBody + createBody, 400, "after the value"},
		{"a byte order mark", "create", "\xef\xbb\xbf" + createBody, 400, ""},
		{"no UTF-8", "create", "{\"workflowId\":\"\xff\"}", 400, "UTF-8"},
		{"a lone surrogate", "create", `{"workflowId":"\ud800"}`, 400, "surrogate"},
		{"NaN", "create", `{"workflowId":NaN}`, 400, ""},
		{"a number with a leading zero", "create", `{"workflowId":01}`, 400, "0"},
		{"a comment", "create", `{/**/"workflowId":"w"}`, 400, ""},
		{"single quotes", "create", `{'workflowId':'w'}`, 400, ""},
		{"cut short", "create", createBody[:20], 400, "unexpected end"},
		{"an array", "create", `[]`, 400, "must be a JSON object"},
		{"null", "create", `null`, 400, "must be a JSON object"},
		{"a string", "create", `"{}"`, 400, "must be a JSON object"},

		{"create without workflowId", "create", `{}`, 400, `"workflowId" is missing`},
		{"create with null as workflowId", "create", `{"workflowId":null}`, 400, `"workflowId" must be a string, not null`},
		{"create with a number as workflowId", "create", `{"workflowId":1}`, 400, `"workflowId" must be a string, not a number`},
		{"create with an unknown member", "create", `{"workflowId":"w","states":[]}`, 400, `unknown member "states"`},
		{"create with null as data", "create", `{"workflowId":"w","data":null}`, 400, `"data" must be an object, not null`},
		{"create with an array as data", "create", `{"workflowId":"w","data":[]}`, 400, `"data" must be an object, not an array`},
		{"create with data._id", "create", `{"workflowId":"w","data":{"_id":"x"}}`, 400, `unknown member "data._id"`},
		{"create with data.svcHistory", "create", `{"workflowId":"w","data":{"svcHistory":[]}}`, 400, `unknown member "data.svcHistory"`},
		{"create with a string as svcPublic", "create", `{"workflowId":"w","data":{"svcPublic":"x"}}`, 400, `"data.svcPublic" must be an object, not a string`},
		{"create with null as svcPrivate", "create", `{"workflowId":"w","data":{"svcPrivate":null}}`, 400, `"data.svcPrivate" must be an object, not null`},

		{"event without workflowId", "event", `{"instanceId":"i","event":{"name":"n"}}`, 400, `"workflowId" is missing`},
		{"event without instanceId", "event", `{"workflowId":"w","event":{"name":"n"}}`, 400, `"instanceId" is missing`},
		{"event without event", "event", `{"workflowId":"w","instanceId":"i"}`, 400, `"event" is missing`},
		{"event without a name", "event", event(`{}`), 400, `"event.name" is missing`},
		{"event with null as event", "event", event(`null`), 400, `"event" must be an object, not null`},
		{"event with a string as event", "event", event(`"approve"`), 400, `"event" must be an object, not a string`},
		{"event with a number as name", "event", event(`{"name":1}`), 400, `"event.name" must be a string, not a number`},
		{"event with null as data", "event", event(`{"name":"n","data":null}`), 400, `"event.data" must be an object, not null`},
		{"event with an array as data", "event", event(`{"name":"n","data":[1]}`), 400, `"event.data" must be an object, not an array`},
		{"event with an unknown member", "event", event(`{"name":"n","user":"x"}`), 400, `unknown member "event.user"`},
		{"event with an empty id", "event", event(`{"name":"n","id":""}`), 400, `"event.id" must have 1 to 255`},
		{"event with an id that has a blank", "event", event(`{"name":"n","id":"a b"}`), 400, `"event.id" must have 1 to 255`},
		{"event with a long id", "event", event(`{"name":"n","id":"` + strings.Repeat("x", 256) + `"}`), 400, `"event.id" must have 1 to 255`},
		{"event with a number as id", "event", event(`{"name":"n","id":7}`), 400, `"event.id" must be a string, not a number`},
		{"event with the data of create", "event", createBody, 400, `unknown member "data"`},

		{"a workflowId that is none", "create", `{"workflowId":""}`, 404, ""},
		{"a workflowId with a dot in front", "create", `{"workflowId":".."}`, 404, ""},
		{"an instanceId that is none", "event", `{"workflowId":"w","instanceId":"a/b","event":{"name":"n"}}`, 404, ""},
		{"an instanceId with NUL", "event", `{"workflowId":"w","instanceId":"a\u0000b","event":{"name":"n"}}`, 404, ""},
		{"what is malformed comes before what is not there", "event", `{"workflowId":"..","instanceId":"i","event":{}}`, 400, `"event.name" is missing`},

		{"1 MiB", "create", createBody + strings.Repeat(" ", 1<<20-len(createBody)), 200, ""},
		{"1 MiB and one byte", "create", createBody + strings.Repeat(" ", 1<<20-len(createBody)+1), 413, "1048576"},
	}
	s := startServer(t, Options{}, nil)
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			before := s.workflows.calls()
			a := s.do(t, post(c.route, c.body, "Content-Type: application/json"))
			if a.status != c.status || !strings.Contains(a.message(), c.message) {
				t.Errorf("got %d %s\nwant %d with %q", a.status, a.body, c.status, c.message)
			}
			if c.status == 400 && a.label() != "InvalidContent" {
				t.Errorf("got the word %q, want InvalidContent", a.label())
			}
			if called := s.workflows.calls() != before; called != (c.status == 200) {
				t.Errorf("the workflows were asked: %v", called)
			}
		})
	}
}

// TestContentTypes holds gateway/INTERFACE.md, "Content types": wrong types, tricks
// with charsets, packed bodies.
func TestContentTypes(t *testing.T) {
	s := startServer(t, Options{}, nil)
	for _, c := range []struct {
		header string
		status int
	}{
		{"Content-Type: application/json", 200},
		{"Content-Type: application/json; charset=utf-8", 200},
		{"Content-Type: application/json;charset=UTF-8", 200},
		{`Content-Type: application/json; charset="utf-8"`, 200},
		{"Content-Type: Application/JSON", 200},
		{"Content-Type: application/json; profile=x", 200},
		{"Content-Type: application/json; charset=utf-16", 415},
		{"Content-Type: application/json; charset=iso-8859-1", 415},
		{"Content-Type: application/json; charset=", 415},
		{"Content-Type: application/json; charset=utf-8; charset=utf-16", 415},
		{"Content-Type: application/jsonx", 415},
		{"Content-Type: application/problem+json", 415},
		{"Content-Type: text/json", 415},
		{"Content-Type: text/plain", 415},
		{"Content-Type: application/x-www-form-urlencoded", 415},
		{"Content-Type: multipart/form-data; boundary=x", 415},
		{"Content-Type: application/json, text/plain", 415},
		{"Content-Type: ", 415},
		{"Content-Encoding: identity", 200},
		{"Content-Encoding: Identity", 200},
		{"Content-Encoding: gzip", 415},
		{"Content-Encoding: br", 415},
		{"Content-Encoding: identity, gzip", 415},
		{"Content-Encoding: ", 415},
	} {
		a := s.do(t, post("event", eventBody, c.header))
		if a.status != c.status {
			t.Errorf("%s: got %d %s, want %d", c.header, a.status, a.body, c.status)
		}
		if c.status == 415 && a.label() != "UnsupportedMediaType" {
			t.Errorf("%s: got the word %q, want UnsupportedMediaType", c.header, a.label())
		}
	}
	a := s.do(t, post("event", eventBody, "Content-Type: application/json", "Content-Type: application/json"))
	if a.status != 415 {
		t.Errorf("two content types: got %d, want 415", a.status)
	}
	a = s.do(t, request{method: "GET", path: "/workflow/api/v1/choices", body: "whatever", headers: []string{withToken, "Content-Type: text/plain"}})
	if a.status != 200 {
		t.Errorf("GET with a body: got %d %s, want 200", a.status, a.body)
	}
}
