package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"troupe/actors"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/repository"
	"troupe/actors/repository/sourcetest"
)

// fakeRepository has what list says; without it nothing.
type fakeRepository struct {
	list func(ctx context.Context, caller *identity.Principal, extension string, yield func(string) error) error
}

func (f fakeRepository) List(ctx context.Context, caller *identity.Principal, extension string, yield func(string) error) error {
	if f.list == nil {
		return nil
	}
	return f.list(ctx, caller, extension, yield)
}

const filesPath = "/repository/api/v1/list-files"

// startFiles starts a server with a repository.
func startFiles(t *testing.T, r Repository) *testServer {
	t.Helper()
	s := startClosed(t, Options{})
	s.workflows, s.sessions = new(fakeWorkflows), new(fakeSessions)
	s.Open(Services{Workflows: s.workflows, Credentials: fakeCredentials{}, Sessions: s.sessions, Repository: r})
	return s
}

// startRealFiles starts a server with a real repository. Ann's role is clerk.
func startRealFiles(t *testing.T) *testServer {
	t.Helper()
	m := sourcetest.NewMemory()
	for _, file := range []string{"/a.csv.xlsx", "/.x", "/x", "/a.rml", "/b/\u00fc.rml", "/b/q\"'\\.rml", "/b/\u2028</script>.txt", "/secret/c.rml", "/User/ann/d.rml", "/User/bob/e.rml", "/a..rml"} {
		if err := m.Put(file, ""); err != nil {
			t.Fatal(err)
		}
	}
	directory, err := identity.ParseDirectory("identity.yaml", []byte("roles: [{id: clerk}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	rights, err := repository.ParseRights("rights.yaml", []byte("- {path: /, readers: [role:clerk]}\n- {path: /secret, readers: []}\n"), directory)
	if err != nil {
		t.Fatal(err)
	}
	system := actors.NewSystem(zerolog.Nop())
	t.Cleanup(func() { stop(t, system) })
	files := repository.Start(repository.Options{System: system, Source: m, Rights: rights, Log: zerolog.Nop()})
	t.Cleanup(func() {
		if err := files.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return startFiles(t, files)
}

// TestListFiles holds gateway/INTERFACE.md, "Extensions", gateway/INTERFACE.md,
// "Paths and their order", and gateway/INTERFACE.md, "Who may read a file".
func TestListFiles(t *testing.T) {
	s := startRealFiles(t)
	for _, c := range []struct {
		rule, query string
		status      int
		want        string // the body, or a part of the message
	}{
		{"D the paths as a JSON array", "?extension=xlsx", 200, `["/a.csv.xlsx"]`},
		{"D.1 a leading dot is stripped", "?extension=.xlsx", 200, `["/a.csv.xlsx"]`},
		{"D.1 only one is", "?extension=..rml", 200, `["/a..rml"]`},
		{"D.2 an extension with a dot inside", "?extension=csv.xlsx", 200, `["/a.csv.xlsx"]`},
		{"D.2 an extension that is not at the end", "?extension=csv", 200, `[]`},
		{"D.2 a dotfile", "?extension=x", 200, `["/.x"]`},
		{"D.4 and the order", "?extension=rml", 200, `["/User/ann/d.rml","/a..rml","/a.rml","/b/q\"'\\.rml","/b/` + "\u00fc" + `.rml"]`},
		{"D.5 nothing matches", "?extension=none", 200, `[]`},
		{"D.5 a pattern", "?extension=*", 200, `[]`},
		{"D.5 a slash", "?extension=/", 200, `[]`},
		{"D.5 a path", "?extension=a/b", 200, `[]`},
		{"D.5 dots", "?extension=..", 200, `[]`},
		{"D.5 a percent sign", "?extension=%25", 200, `[]`},
		{"case as written", "?extension=RML", 200, `[]`},
		{"an escaped letter is that letter", "?extension=x%6csx", 200, `["/a.csv.xlsx"]`},
		{"what JSON need not escape is not", "?extension=txt", 200, `["/b/` + "\u2028" + `</script>.txt"]`},
		{"400 missing", "", 400, "missing or blank"},
		{"400 empty", "?extension=", 400, "missing or blank"},
		{"400 without a value", "?extension", 400, "missing or blank"},
		{"400 a dot", "?extension=.", 400, "missing or blank"},
		{"400 a blank", "?extension=%20", 400, "missing or blank"},
		{"400 a plus is a blank", "?extension=+", 400, "missing or blank"},
		{"400 a tab", "?extension=%09", 400, "missing or blank"},
		{"400 a blank behind the dot", "?extension=.%20", 400, "missing or blank"},
		{"400 NUL", "?extension=%00", 400, "control character"},
		{"400 a line end", "?extension=rml%0a", 400, "control character"},
		{"400 no UTF-8", "?extension=%ff", 400, "not UTF-8"},
		{"400 10 kB", "?extension=" + strings.Repeat("a", 10_000), 400, "longer than"},
		{"400 repeated", "?extension=rml&extension=rml", 400, "repeated"},
		{"400 malformed", "?extension=%zz", 400, "malformed"},
		{"400 a semicolon", "?extension=rml;a=b", 400, "malformed"},
		{"400 another parameter", "?extension=rml&limit=1", 400, "unknown query parameter"},
		{"400 another case of the parameter", "?Extension=rml", 400, "unknown query parameter"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			a := s.do(t, request{method: "GET", path: filesPath + c.query, headers: []string{"Authentication: svc.token " + tokenAnn}})
			if a.status != c.status {
				t.Fatalf("got %d %s, want %d", a.status, a.body, c.status)
			}
			checkCommonHeaders(t, a.header)
			if c.status == 200 && a.body != c.want {
				t.Errorf("got %s, want %s", a.body, c.want)
			}
			if c.status == 400 {
				checkErrorBody(t, a)
				if a.label() != "BadRequest" || !strings.Contains(a.message(), c.want) {
					t.Errorf("got %s, want BadRequest that says %q", a.body, c.want)
				}
			}
			if head := s.do(t, request{method: "HEAD", path: filesPath + c.query, headers: []string{withToken}}); head.status != c.status || head.body != "" {
				t.Errorf("HEAD: got %d %q", head.status, head.body)
			}
		})
	}
}

// TestListFilesCredentials holds gateway/INTERFACE.md, "Which group takes which",
// for group D.
func TestListFilesCredentials(t *testing.T) {
	s := startRealFiles(t)
	for _, c := range []struct {
		rule, header string
		status       int
		want         string
	}{
		{"a token in Authentication", "Authentication: svc.token " + tokenAnn, 200, `["/User/ann/d.rml"`},
		{"a token in Authorization", "Authorization: svc.token " + tokenAnn, 200, `["/User/ann/d.rml"`},
		{"a session", "Cookie: session=" + sessionAnn, 200, `["/User/ann/d.rml"`},
		{"another caller", "Authentication: svc.token " + tokenBob, 200, `["/User/bob/e.rml"]`},
		{"no credential", "X-None: x", 401, `"error":"Unauthorized"`},
		{"an unknown token", "Authentication: svc.token " + tokenNobody, 401, `"error":"Unauthorized"`},
		{"who asks comes before what is asked", "Authentication: x", 401, `"error":"Unauthorized"`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			a := s.do(t, request{method: "GET", path: filesPath + "?extension=rml", headers: []string{c.header}})
			if a.status != c.status || !strings.Contains(a.body, c.want) {
				t.Errorf("got %d %s, want %d %s", a.status, a.body, c.status, c.want)
			}
			if c.status == 401 {
				checkErrorBody(t, a)
				if a := s.do(t, request{method: "GET", path: filesPath, headers: []string{c.header}}); a.status != 401 {
					t.Errorf("a wrong query: got %d, want 401", a.status)
				}
			}
		})
	}
}

// TestListFilesErrors holds gateway/INTERFACE.md, "Errors", for group D, and
// gateway/INTERFACE.md, "The index after a start".
func TestListFilesErrors(t *testing.T) {
	for _, c := range []struct {
		rule   string
		err    error
		status int
		word   string
	}{
		{"the index is being built", failure.ErrUnavailable, 503, "Unavailable"},
		{"too many at once", failure.ErrBusy, 503, "Busy"},
		{"a bug", failure.ErrInternal, 500, "Internal"},
		{"an unknown error", errors.New("/secret"), 500, "Internal"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := startFiles(t, fakeRepository{func(_ context.Context, _ *identity.Principal, _ string, yield func(string) error) error {
				for range 10 { // a short piece, which is not sent yet
					if err := yield("/a.rml"); err != nil {
						return err
					}
				}
				return fmt.Errorf("repository: list: %w", c.err)
			}})
			a := s.do(t, get(filesPath+"?extension=rml"))
			checkErrorBody(t, a)
			if a.status != c.status || a.label() != c.word || (a.header.Get("Retry-After") != "") != (c.status == 503) || strings.Contains(a.body, "/") {
				t.Errorf("got %d %s %v, want %d %s", a.status, a.body, a.header, c.status, c.word)
			}
		})
	}
	t.Run("without a repository", func(t *testing.T) {
		s := startFiles(t, nil)
		if a := s.do(t, get(filesPath+"?extension=rml")); a.status != 404 || a.label() != "NotFound" {
			t.Errorf("got %d %s, want 404", a.status, a.body)
		}
	})
}

// TestLongListsOfFiles are streamed, and never look whole when they are not.
func TestLongListsOfFiles(t *testing.T) {
	const many = 50_000
	var fail error
	s := startFiles(t, fakeRepository{func(_ context.Context, _ *identity.Principal, _ string, yield func(string) error) error {
		for i := range many {
			if err := yield(fmt.Sprintf("/folder/%06d.rml", i)); err != nil {
				return err
			}
		}
		return fail
	}})
	a := s.do(t, get(filesPath+"?extension=rml"))
	var paths []string
	if err := json.Unmarshal([]byte(a.body), &paths); err != nil || len(paths) != many || paths[many-1] != "/folder/049999.rml" {
		t.Errorf("got %d paths and %v, want %d", len(paths), err, many)
	}
	if a.header.Get("Content-Length") != "" {
		t.Error("a long list was collected before it was sent")
	}
	fail = failure.ErrInternal
	text, err := s.rawErr(t, "GET "+filesPath+"?extension=rml HTTP/1.1\r\nHost: x\r\n"+withToken+"\r\n\r\n")
	if err == nil || strings.HasSuffix(text, "]\r\n0\r\n\r\n") {
		t.Errorf("a list that broke off ended in order: %d bytes", len(text))
	}
	if !strings.HasPrefix(text, fmt.Sprintf("HTTP/1.1 %d ", http.StatusOK)) && text != "" {
		t.Errorf("got %.40q", text)
	}
}
