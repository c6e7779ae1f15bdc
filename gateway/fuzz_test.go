package gateway

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// The oracles of this file are the obvious versions of the readers: regular
// expressions and the standard library instead of loops.

var tokenHeader = regexp.MustCompile(`^(?:[sS][vV][cC]\.[tT][oO][kK][eE][nN]|[bB][eE][aA][rR][eE][rR]) ([A-Za-z0-9._-]{43,})$`)

// referenceToken is the oracle of parseTokens.
func referenceToken(authorization, authentication []string) (token string, present, ambiguous bool) {
	lines := slices.Concat(authorization, authentication)
	if len(authorization) > 1 || len(authentication) > 1 || slices.ContainsFunc(lines, func(s string) bool { return strings.Contains(s, ",") }) {
		return "", false, true
	}
	var tokens []string
	for _, line := range lines {
		if m := tokenHeader.FindStringSubmatch(line); m != nil {
			tokens = append(tokens, m[1])
		}
	}
	switch {
	case len(tokens) < len(lines) || len(tokens) == 0:
		return "", len(lines) > 0, false
	case tokens[0] != tokens[len(tokens)-1]:
		return "", false, true
	}
	return tokens[0], true, false
}

func FuzzTokenHeaders(f *testing.F) {
	for _, seed := range []string{
		"", "svc.token " + tokenAnn, "Bearer " + tokenAnn, "SVC.TOKEN " + tokenAnn, "svc.token  " + tokenAnn, "svc.token\t" + tokenAnn,
		"svc.token " + tokenAnn + ",svc.token " + tokenBob, "Basic YTpi", "svc.token " + tokenAnn[:42], "svc.token " + tokenAnn + "\x00", "ſvc.token " + tokenAnn,
	} {
		f.Add(seed, seed, uint8(1), uint8(0))
		f.Add(seed, "Bearer "+tokenAnn, uint8(1), uint8(1))
		f.Add(seed, seed, uint8(0), uint8(2))
	}
	f.Fuzz(func(t *testing.T, first, second string, n, m uint8) {
		authorization := slices.Repeat([]string{first}, int(n%3))
		authentication := slices.Repeat([]string{second}, int(m%3))
		token, present, err := parseTokens(authorization, authentication)
		wantToken, wantPresent, ambiguous := referenceToken(authorization, authentication)
		if token != wantToken || present != wantPresent || errors.Is(err, failure.ErrInvalid) != ambiguous {
			t.Errorf("%q %q: got %q, %v, %v; want %q, %v, ambiguous %v", authorization, authentication, token, present, err, wantToken, wantPresent, ambiguous)
		}
	})
}

func FuzzCookie(f *testing.F) {
	for _, seed := range []string{
		"", "session=" + sessionAnn, "a=b; session=" + sessionAnn, "session=" + sessionAnn + "; session=x", "session", "session=", "session =x",
		`session="` + sessionAnn + `"`, "session= " + sessionAnn, ";;;", "=", "session==", "\tsession=" + sessionAnn + "\t;",
	} {
		f.Add(seed, "")
		f.Add(seed, seed)
		f.Add(seed, "session="+sessionAnn)
	}
	shape := regexp.MustCompile(`^[A-Za-z0-9._-]{43,}$`)
	f.Fuzz(func(t *testing.T, first, second string) {
		lines := []string{first, second}
		session, present, err := parseSession(lines, "session")
		var values []string
		for _, pair := range strings.Split(first+";"+second, ";") {
			name, value, ok := strings.Cut(pair, "=")
			if ok && strings.Trim(name, " \t") == "session" {
				values = append(values, strings.Trim(value, " \t"))
			}
		}
		switch {
		case len(values) > 1:
			if !errors.Is(err, failure.ErrInvalid) {
				t.Errorf("%q: got %v with %d session cookies", lines, err, len(values))
			}
		case err != nil || present != (len(values) == 1):
			t.Errorf("%q: got present %v, %v with %d session cookies", lines, present, err, len(values))
		case len(values) == 1 && shape.MatchString(values[0]) && session != values[0], len(values) == 1 && !shape.MatchString(values[0]) && session != "":
			t.Errorf("%q: got %q", lines, session)
		}
		// Whatever the standard library finds to be a session, we must not take for
		// another. It leaves the white space behind the equals sign, which RFC 6265,
		// section 5.2, takes away; and it takes "session" without one for a name
		// with an empty value, where section 5.2 has no name. It passes over line
		// ends as over blanks; no header has them.
		if strings.ContainsAny(first+second, "\r\n") {
			return
		}
		for _, std := range (&http.Request{Header: http.Header{"Cookie": lines}}).CookiesNamed("session") {
			if session != "" && std.Value != "" && strings.TrimLeft(std.Value, " \t") != session {
				t.Errorf("%q: got %q, net/http reads %q", lines, session, std.Value)
			}
		}
	})
}

func FuzzIdempotencyKey(f *testing.F) {
	for _, seed := range []string{"", "k", `"k"`, `"a\"b\\c"`, `"`, `""`, `"k"x`, `"k\"`, "a b", "ü", strings.Repeat("k", 256)} {
		f.Add(seed)
	}
	quoted := regexp.MustCompile(`^"(?:[!#-\[\]-~]|\\["\\])*"$`)
	bare := regexp.MustCompile(`^[!#-~][!-~]*$`)
	f.Fuzz(func(t *testing.T, line string) {
		got, err := parseIdempotencyKey([]string{line})
		want := ""
		switch {
		case quoted.MatchString(line):
			want = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(line[1 : len(line)-1])
		case bare.MatchString(line):
			want = line
		}
		if len(want) > 255 {
			want = ""
		}
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", line, got, err, want)
		}
	})
}

func FuzzIfMatch(f *testing.F) {
	for _, seed := range []string{"*", `"1"`, `W/"1"`, `"1", "2"`, `,"1",,`, `"1" "2"`, `"`, `1`, `"01"`, `"a,b"`, `"18446744073709551616"`, `"7-gzip"`, `"-gzip", W/"7-gzip", "7-gzip-gzip"`, ""} {
		f.Add(seed)
	}
	list := regexp.MustCompile(`^[ \t,]*(?:(?:W/)?"[!#-~\x80-\xff]*"[ \t]*(?:,[ \t,]*|$))+$`)
	strong := regexp.MustCompile(`(W/)?"([!#-~\x80-\xff]*)"`)
	number := regexp.MustCompile(`^([1-9][0-9]*)(?:-gzip)?$`)
	f.Fuzz(func(t *testing.T, line string) {
		got, err := parseIfMatch([]string{line})
		if line == "*" {
			if got != nil || err != nil {
				t.Errorf("*: got %v, %v", got, err)
			}
			return
		}
		// NB: the oracle reads bytes; as Latin-1 each is one character.
		latin := []rune{}
		for i := range len(line) {
			latin = append(latin, rune(line[i]))
		}
		text := string(latin)
		tags := strong.FindAllStringSubmatch(text, -1)
		if ok := list.MatchString(text) && len(tags) <= entityTagsMax; (err == nil) != ok {
			t.Fatalf("%q: got %v, %v; want ok %v", line, got, err, ok)
		}
		if err != nil {
			return
		}
		var want []uint64
		for _, tag := range tags {
			m := number.FindStringSubmatch(tag[2])
			if m == nil || tag[1] != "" {
				continue
			}
			if n, err := strconv.ParseUint(m[1], 10, 64); err == nil {
				want = append(want, n)
			}
		}
		if len(want) == 0 {
			want = []uint64{0}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", line, got, want)
		}
	})
}

func FuzzPrefer(f *testing.F) {
	for _, seed := range []string{"return=minimal", `foo="a,b", return=minimal`, `return="minimal"`, `"`, `a="\"`, ",;=", "return"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got := prefersMinimal([]string{line})
		if got && !strings.Contains(line, "minimal") {
			t.Errorf("%q: got a wish that is not there", line)
		}
		if alone := !strings.ContainsAny(line, `",`) && regexp.MustCompile(`(?i)^[ \t]*return[ \t]*=[ \t]*(?-i:minimal)[ \t]*(;.*)?$`).MatchString(line); alone && !got {
			t.Errorf("%q: the wish was not heard", line)
		}
		// A list is what its lines are.
		if before, after, found := strings.Cut(line, ","); found && !strings.Contains(line, `"`) && prefersMinimal([]string{before, after}) != got {
			t.Errorf("%q: two lines mean something else", line)
		}
	})
}

func FuzzContentType(f *testing.F) {
	for _, seed := range []string{"application/json", "application/json; charset=utf-8", "application/json;charset=\"utf-8\"", "text/json", ";", "application/json;charset=utf-16"} {
		f.Add(seed)
	}
	simple := regexp.MustCompile(`(?i)^application/json[ \t]*(;[ \t]*charset=("utf-8"|utf-8)[ \t]*)?;?[ \t]*$`)
	f.Fuzz(func(t *testing.T, line string) {
		err := checkContentType(http.Header{"Content-Type": {line}}, headerRequired)
		lower := strings.ToLower(strings.TrimSpace(line))
		if err == nil && !strings.HasPrefix(lower, "application/json") {
			t.Errorf("%q passed", line)
		}
		if err != nil && !errors.Is(err, failure.ErrMediaType) {
			t.Errorf("%q: got %v", line, err)
		}
		if err != nil && simple.MatchString(line) && !strings.ContainsFunc(line, func(r rune) bool { return r > '~' }) {
			t.Errorf("%q was refused", line)
		}
	})
}

// bodySeeds are bodies near the right ones.
var bodySeeds = []string{
	createBody, eventBody, "", "{}", "null", `{"workflowId":"w"}`, `{"workflowId":"w","workflowId":"w"}`, `{"WorkflowId":"w"}`,
	`{"workflowId":"w","data":{"svcPublic":{},"svcPrivate":{}}}`, `{"workflowId":"w","instanceId":"i","event":{"name":"n","data":{},"id":"k"}}`,
	`{"workflowId":1}`, `{"workflowId":"w","data":null}`, `{"\u0077orkflowId":"w"}`, "{\"workflowId\":\"\xff\"}", `{"workflowId":"w"} x`,
}

func FuzzCreateBody(f *testing.F) {
	for _, seed := range bodySeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		original := string(text)
		body, err := parseBody(text)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		request, err := parseCreate(body)
		if string(text) != original {
			t.Errorf("the body was changed: %q", original)
		}
		var std struct {
			WorkflowID *string `json:"workflowId"`
			Data       struct {
				Public  json.RawMessage `json:"svcPublic"`
				Private json.RawMessage `json:"svcPrivate"`
			} `json:"data"`
		}
		stdErr := json.Unmarshal(text, &std)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		if stdErr != nil || std.WorkflowID == nil || *std.WorkflowID != request.WorkflowID || !statemachine.IsIdentifier(request.WorkflowID) {
			t.Errorf("%q: got %q, encoding/json reads %v, %v", original, request.WorkflowID, std.WorkflowID, stdErr)
		}
		checkSame(t, request.Public, std.Data.Public)
		checkSame(t, request.Private, std.Data.Private)
	})
}

func FuzzEventBody(f *testing.F) {
	for _, seed := range bodySeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		body, err := parseBody(text)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		request, err := parseEvent(body)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		var std struct {
			WorkflowID string `json:"workflowId"`
			InstanceID string `json:"instanceId"`
			Event      struct {
				Name string          `json:"name"`
				ID   string          `json:"id"`
				Data json.RawMessage `json:"data"`
			} `json:"event"`
		}
		if err := json.Unmarshal(text, &std); err != nil {
			t.Fatalf("%q passed, but encoding/json says %v", text, err)
		}
		if std.WorkflowID != request.WorkflowID || std.InstanceID != request.InstanceID || std.Event.Name != request.Name || std.Event.ID != request.ID {
			t.Errorf("%q: got %+v, encoding/json reads %+v", text, request, std)
		}
		if request.ID != "" && !isIdempotencyKey(request.ID) {
			t.Errorf("%q: got the id %q", text, request.ID)
		}
		checkSame(t, request.Data, std.Event.Data)
	})
}

// checkRefusal holds that an error of a reader is the caller's, and short.
func checkRefusal(t *testing.T, err error) {
	t.Helper()
	f := mappingOf(err)
	if f.status != 400 && f.status != 404 {
		t.Errorf("%v is answered with %d", err, f.status)
	}
	if text := f.message(err, ""); len(text) > 300 {
		t.Errorf("a message of %d bytes: %q", len(text), text)
	}
}

// checkSame holds that a value is an object that the standard library reads
// alike, or that both have none.
func checkSame(t *testing.T, got data.Value, std json.RawMessage) {
	t.Helper()
	if got.Kind() == data.Absent && std == nil {
		return
	}
	want, err := data.Clean(std)
	if err != nil || got.Kind() != data.Object || !data.Equal(got, want) {
		t.Errorf("got %s, encoding/json reads %s", got, std)
	}
}

// FuzzTarget sends any request target: there must be one answer in JSON, never
// a redirect, and never a success without a credential.
func FuzzTarget(f *testing.F) {
	for _, seed := range []string{
		"/workflow/api/v1/choices", "/workflow/api/v1/instance/a/b", "/workflow/api/v1/instances/a?filter=%7B%7D", "//", "*", "/%2F", "http://x/workflow/api/v1/choices",
		"/workflow/api/v1/watch/a?filter=%7B%7D", "/workflow/api/v1/watch/a/b", "/workflow/api/v1/watch/a/", "/workflow/api/v1/instance/a/b/events",
		"/workflow/api/v1/instance/a/b/history?limit=1&cursor=x", "/workflow/api/v1/instances/a?limit=1&fields=svcPrivate", "/workflow/api/v1/instances/a?explain=true",
		"/workflow/api/v1/instance/%00/b", "/workflow/api/v1/choices?a;b", "/session", "/login?next=/x", "/login?next=//x", "/login/style.css", "/login/script.js", "/login/", "/login/oidc?next=/x", "/login/oidc/callback?state=x&code=y&other=z", "/workflow/api/v1/instance//", "/livez?verbose", "/readyz?%zz",
		"/form-portal/role-info", "/form-portal/workflows?x", "/form-portal/forms/mycurrent", "/form-portal/checklists/myarchived", "/form-portal/forms/role/clerk", "/form-portal/checklists/role/%00",
		"/form-portal/forms/create", "/form-runtime/api/v1/form/-/i", "/form-runtime/api/v1/draft/a/b", "/form-runtime/api/v1/submit", "/form-runtime/%61pi/v1/form/-/-", "/form-runtime/a/-/b/index.html",
	} {
		f.Add("GET", seed, true)
		f.Add("POST", seed, false)
	}
	server, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	server.Open(Services{Workflows: new(fakeWorkflows), Credentials: fakeCredentials{}, Portal: new(fakePortal)})
	f.Fuzz(func(t *testing.T, method, target string, signed bool) {
		text := method + " " + target + " HTTP/1.1\r\nHost: x\r\n"
		if signed {
			text += withToken + "\r\n" + withPortal + "\r\n" // each route takes what it knows
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text + "\r\n")))
		if err != nil {
			return // net/http answers that itself
		}
		w := newRecorder()
		observe(t, server).ServeHTTP(w, r)
		page := r.URL.Path == "/login" || r.URL.Path == "/login/oidc" || r.URL.Path == callbackPath || r.URL.Path == "/" || r.URL.Path == "/docs" || formPage.MatchString(r.URL.Path)
		file := r.URL.Path == "/login/style.css" || r.URL.Path == "/login/script.js" || r.URL.Path == "/favicon.ico" || r.URL.Path == "/openapi.yaml" || r.URL.Path == "/openapi.json" || strings.HasPrefix(r.URL.Path, "/assets/")
		probe := r.URL.Path == "/livez" || r.URL.Path == "/readyz" || page || file
		switch w.status {
		case 200:
			if !signed && !probe {
				t.Errorf("%s %q is answered without a credential: %s", method, target, w.body.String())
			}
		case 403:
			if !r.URL.Query().Has("explain") {
				t.Errorf("%s %q: got 403", method, target)
			}
		case 415:
			if r.URL.Path != "/session" {
				t.Errorf("%s %q: got 415", method, target)
			}
		case 400, 401, 404, 405:
		default:
			t.Errorf("%s %q: got %d", method, target, w.status)
		}
		if w.header.Get("Content-Type") == "text/event-stream" {
			if events := readEvents(w.body.String()); method == http.MethodGet && len(events) != 1 || method != http.MethodGet && len(events) > 0 {
				t.Errorf("%s %q: got the events %v", method, target, events)
			}
			return
		}
		if page && w.header.Get("Content-Type") != "application/json" {
			if !strings.HasPrefix(strings.ToLower(w.body.String()), "<!doctype html>") || !strings.HasPrefix(w.header.Get("Content-Type"), "text/html") {
				t.Errorf("%s %q: got no page: %q", method, target, w.body.String())
			}
			return
		}
		if file && w.status == 200 {
			return
		}
		if !json.Valid(w.body.Bytes()) {
			t.Errorf("%s %q: got no JSON: %q", method, target, w.body.String())
		}
	})
}

var formPage = regexp.MustCompile(`^/form-runtime/[^/]+/[^/]+/[^/]+/index\.html$`)

// TestCredentialsProperty holds pick: never another kind than the route takes,
// never a fall back from a token that stands there.
func TestCredentialsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := credentials{
			token: rapid.SampledFrom([]string{"", "T"}).Draw(t, "token"), session: rapid.SampledFrom([]string{"", "S"}).Draw(t, "session"),
		}
		c.hasToken = c.token != "" || rapid.Bool().Draw(t, "hasToken")
		c.hasSession = c.session != "" || rapid.Bool().Draw(t, "hasSession")
		kinds := rapid.SampledFrom([]uint8{1, 2, 3}).Draw(t, "kinds")
		kind, text, err := c.pick(identity.Kind(kinds))
		switch {
		case err != nil && (kind != 0 || text != ""):
			t.Fatalf("an error and the credential %q", text)
		case err == nil && (text == "" || uint8(kind)&kinds == 0):
			t.Fatalf("got kind %d and %q on a route that takes %d", kind, text, kinds)
		case err == nil && text == "S" && kinds&1 != 0 && c.hasToken:
			t.Fatal("fell back from a token")
		}
	})
}
