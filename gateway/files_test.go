package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/template"
)

// fakeFiles lists what list says, and has templates without parameters. Its zero
// value has nothing.
type fakeFiles struct {
	list func(yield func(string) error) error
	fail error // of Parameters
}

func (f fakeFiles) List(_ context.Context, _ *identity.Principal, _ string, yield func(string) error) error {
	if f.list == nil {
		return nil
	}
	return f.list(yield)
}

func (f fakeFiles) Parameters(context.Context, *identity.Principal, template.Kind, string) ([]template.Param, error) {
	return []template.Param{}, f.fail
}

const filesPath = "/repository/api/v1/list-files?extension=rml"

// startFiles starts a server with files and nothing else.
func startFiles(t *testing.T, f fakeFiles) *testServer {
	t.Helper()
	s := startClosed(t, Options{})
	s.Open(Services{Workflows: new(fakeWorkflows), Credentials: fakeCredentials{}, Repository: f, Templates: f})
	return s
}

// TestErrorsOfFiles holds gateway/INTERFACE.md, "Errors", for groups C and D.
func TestErrorsOfFiles(t *testing.T) {
	for _, fail := range []error{
		failure.ErrUnavailable, failure.ErrBusy, failure.ErrInternal, errors.New("at /secret/place"), failure.ErrNotFound,
		failure.Refuse(failure.ErrUnprocessable, "with a password"), failure.Refuse(failure.ErrTooLarge, "more than 10 parts"),
	} {
		fail = fmt.Errorf("of /secret/place: %w", fail)
		s := startFiles(t, fakeFiles{fail: fail, list: func(yield func(string) error) error {
			return errors.Join(yield("/a.rml"), fail) // a short piece, which is not sent yet
		}})
		want := mappingOf(fail)
		for _, path := range []string{filesPath, "/rml-engine/api/v1/parameters?rml=/a.rml", "/docx-engine/api/v1/parameters?docx=/a.docx"} {
			if !describes(get(path), want.status) {
				continue // it has no such error
			}
			a := s.do(t, get(path))
			if a.status != want.status || a.label() != want.labels[groupFile] || (a.header.Get("Retry-After") != "") != want.retry || strings.Contains(a.body, "secret") {
				t.Errorf("%s: %v: got %d %s %v, want %d %s", path, fail, a.status, a.body, a.header, want.status, want.labels[groupFile])
			}
			if reason := want.message(fail, ""); want.status != 500 && a.message() != reason {
				t.Errorf("%s: got the message %q, want %q", path, a.message(), reason)
			}
			checkErrorBody(t, a)
		}
	}
	s := startClosed(t, Options{})
	s.Open(Services{Workflows: new(fakeWorkflows), Credentials: fakeCredentials{}})
	if a := s.do(t, get(filesPath)); a.status != 404 || a.label() != "NotFound" {
		t.Errorf("without a repository: got %d %s, want 404", a.status, a.body)
	}
}

// TestLongListsOfFiles are streamed, and never look whole when they are not.
func TestLongListsOfFiles(t *testing.T) {
	const many = 50_000
	var fail error
	s := startFiles(t, fakeFiles{list: func(yield func(string) error) error {
		for i := range many {
			if err := yield(fmt.Sprintf("/folder/%06d.rml", i)); err != nil {
				return err
			}
		}
		return fail
	}})
	a := s.do(t, get(filesPath))
	var paths []string
	if err := json.Unmarshal([]byte(a.body), &paths); err != nil || len(paths) != many || paths[many-1] != "/folder/049999.rml" || a.header.Get("Content-Length") != "" {
		t.Errorf("got %d paths, %v and Content-Length %q, want %d, streamed", len(paths), err, a.header.Get("Content-Length"), many)
	}
	fail = failure.ErrInternal
	text, err := s.rawErr(t, "GET "+filesPath+" HTTP/1.1\r\nHost: x\r\n"+withToken+"\r\n\r\n")
	if err == nil || strings.HasSuffix(text, "]\r\n0\r\n\r\n") || text != "" && !strings.HasPrefix(text, "HTTP/1.1 200 ") {
		t.Errorf("a list that broke off ended in order: %d bytes, %.40q", len(text), text)
	}
}
