package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"troupe/actors/failure"
	"troupe/actors/identity"
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

// TestListFilesErrors holds gateway/INTERFACE.md, "Errors", for group D.
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
