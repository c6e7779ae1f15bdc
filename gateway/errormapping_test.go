package gateway

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/quota"
	"troupe/actors/repository"
	"troupe/actors/template"
	"troupe/actors/workflow"
	"troupe/gateway/provider"
)

// sentinels are the errors that may reach the gateway, by their names.
var sentinels = map[string]error{
	"failure.ErrInvalid":          failure.ErrInvalid,
	"failure.ErrForbidden":        failure.ErrForbidden,
	"failure.ErrNotFound":         failure.ErrNotFound,
	"failure.ErrNotAllowed":       failure.ErrNotAllowed,
	"failure.ErrPrecondition":     failure.ErrPrecondition,
	"failure.ErrTooLarge":         failure.ErrTooLarge,
	"failure.ErrKeyReused":        failure.ErrKeyReused,
	"failure.ErrBusy":             failure.ErrBusy,
	"failure.ErrInstanceBusy":     failure.ErrInstanceBusy,
	"failure.ErrQuota":            failure.ErrQuota,
	"failure.ErrUnavailable":      failure.ErrUnavailable,
	"failure.ErrOutcomeUnknown":   failure.ErrOutcomeUnknown,
	"failure.ErrExecution":        failure.ErrExecution,
	"failure.ErrInternal":         failure.ErrInternal,
	"identity.ErrUnauthorized":    identity.ErrUnauthorized,
	"identity.ErrTooManyAttempts": identity.ErrTooManyAttempts,
	"identity.ErrBusy":            identity.ErrBusy,
	"identity.ErrFull":            identity.ErrFull,
	"identity.ErrStopped":         identity.ErrStopped,
	"provider.ErrFlow":            provider.ErrFlow,
	"provider.ErrRefused":         provider.ErrRefused,
	"provider.ErrBusy":            provider.ErrBusy,
	"provider.ErrUnavailable":     provider.ErrUnavailable,
	"repository.ErrTooLarge":      repository.ErrTooLarge,
	"param.ErrNotTemplate":        template.ErrNotTemplate,
	"param.ErrEncrypted":          template.ErrEncrypted,
	"param.ErrTooLarge":           template.ErrTooLarge,
	"gateway.errMalformed":        errMalformed,
	"gateway.errUnauthorized":     errUnauthorized,
	"gateway.errCrossOrigin":      errCrossOrigin,
	"gateway.errPrivilege":        errPrivilege,
	"gateway.errNotFound":         errNotFound,
	"gateway.errMethod":           errMethod,
	"gateway.errTooLarge":         errTooLarge,
	"gateway.errMediaType":        errMediaType,
	"gateway.errBusy":             errBusy,
	"gateway.errNotReady":         errNotReady,
}

// elsewhere are the errors that no route of the table can meet, with the place
// that answers them.
var elsewhere = map[string]string{
	"identity.ErrNoCredential": "gateway/admin",
	"identity.ErrNoUser":       "gateway/admin",
	"identity.ErrInvalid":      "gateway/admin",
	"identity.ErrCorrupt":      "identity itself: the credential is refused",
	"gateway.ErrStopped":       "the caller of Start",
	"gateway.errAborted":       "the connection is closed",
}

// TestEverySentinelHasARow reads the errors.go of the packages that the gateway
// calls, so that a new error without a row fails here.
func TestEverySentinelHasARow(t *testing.T) {
	for pkg, file := range map[string]string{
		"failure":    "../actors/failure/failure.go",
		"identity":   "../actors/identity/errors.go",
		"repository": "../actors/repository/errors.go",
		"param":      "../actors/template/param/errors.go",
		"provider":   "provider/errors.go",
		"gateway":    "errors.go",
	} {
		names := sentinelNames(t, file)
		if len(names) == 0 {
			t.Errorf("%s declares no errors: does the test still read it right?", file)
		}
		for _, name := range names {
			name = pkg + "." + name
			if pkg != "gateway" && strings.HasPrefix(name, pkg+".err") {
				continue // does not leave its package
			}
			err, known := sentinels[name]
			if !known {
				if elsewhere[name] == "" {
					t.Errorf("%s is neither in the table of errormapping.go nor known to be answered elsewhere", name)
				}
				continue
			}
			if f := mappingOf(fmt.Errorf("operation: %w", err)); !errors.Is(f.cause, err) {
				t.Errorf("%s has no row: it would be answered as %d", name, f.status)
			}
		}
	}
}

// sentinelNames returns the package-level variables of a file that are called
// like errors.
func sentinelNames(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, decl := range parsed.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			for _, ident := range spec.(*ast.ValueSpec).Names {
				if strings.HasPrefix(ident.Name, "Err") || strings.HasPrefix(ident.Name, "err") {
					names = append(names, ident.Name)
				}
			}
		}
	}
	return names
}

// TestErrorLabels holds the table of gateway/INTERFACE.md, "Errors".
func TestErrorLabels(t *testing.T) {
	for _, c := range []struct {
		status                 int
		portal, workflow, file string
	}{
		{400, "Bad request", "InvalidContent", "BadRequest"},
		{401, "Unauthorized", "Unauthorized", "Unauthorized"},
		{403, "Access denied", "AccessDenied", "AccessDenied"},
		{404, "Not found", "NotFound", "NotFound"},
		{405, "Method not allowed", "MethodNotAllowed", "MethodNotAllowed"},
		{409, "Conflict", "EventNotAllowed", "EventNotAllowed"},
		{412, "Precondition failed", "PreconditionFailed", "PreconditionFailed"},
		{413, "Too large", "TooLarge", "TooLarge"},
		{415, "Unsupported media type", "UnsupportedMediaType", "UnsupportedMediaType"},
		{422, "Unprocessable", "KeyReused|Unprocessable", "Unprocessable"},
		{429, "Busy", "Busy", "Busy"},
		{503, "Busy", "Busy|Unavailable", "Busy|Unavailable"},
		{504, "Busy", "OutcomeUnknown", "OutcomeUnknown"},
		{500, "Server error", "MarshallingError|Internal", "MarshallingError|Internal"},
	} {
		rows := 0
		for _, f := range append([]errorMapping{internalError}, errorMappings...) {
			if f.status != c.status {
				continue
			}
			rows++
			for g, want := range map[group]string{groupPortal: c.portal, groupWorkflow: c.workflow, groupFile: c.file} {
				if got := f.labels[g]; got == "" || !strings.Contains("|"+want+"|", "|"+got+"|") {
					t.Errorf("%d in group %d: got %q, want %s", c.status, g, got, want)
				}
			}
			if f.retry != (c.status == 429 || c.status == 503) {
				t.Errorf("%d: Retry-After %v", c.status, f.retry)
			}
		}
		if rows == 0 {
			t.Errorf("no row has the status %d", c.status)
		}
	}
}

// TestErrorMessages holds what a message may be made of.
func TestErrorMessages(t *testing.T) {
	ownText := map[error]bool{
		errMalformed: true, failure.ErrInvalid: true, errTooLarge: true, errMediaType: true, failure.ErrQuota: true,
		template.ErrNotTemplate: true, template.ErrEncrypted: true, template.ErrTooLarge: true,
	}
	for _, f := range errorMappings {
		if got := f.text == ""; got != ownText[f.cause] {
			t.Errorf("%v: shows its own text: %v", f.cause, got)
		}
	}
	long := fmt.Errorf("%w: %s", failure.ErrInvalid, strings.Repeat("ü", 1000))
	if got := mappingOf(long).message(long, ""); len(got) > messageBytesMax+len("…") || !strings.HasSuffix(got, "ü…") {
		t.Errorf("a long text: got %d bytes, %q", len(got), got)
	}
	evil := "invalid content: " + strings.Repeat("x", 300)
	for _, c := range []struct {
		err  error
		want string
	}{
		{failure.ErrInvalid, "invalid content"},
		{fmt.Errorf("%w: unknown event", failure.ErrInvalid), "unknown event"},
		{fmt.Errorf("send %q: %w", evil, fmt.Errorf("%w: %w", failure.ErrInvalid, errors.New("unknown event"))), "unknown event"},
		{fmt.Errorf("send %q: %w", evil, errors.Join(errors.New("other"), fmt.Errorf("%w: unknown event", failure.ErrInvalid))), "unknown event"},
		{refuse(errMalformed, "the body is %s", "wrong"), "the body is wrong"},
	} {
		if got := mappingOf(c.err).message(c.err, ""); got != c.want {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
	if f := mappingOf(errors.New("new")); f != &internalError || f.message(nil, "id7") != textInternal+"; the log has more under id7" {
		t.Errorf("an unknown error: got %+v", f)
	}
}

// TestRetryAfterHasJitter holds gateway/INTERFACE.md, "Refusals under load":
// callers who were refused together do not come back together.
func TestRetryAfterHasJitter(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		seen[retryAfter()[0]] = true
	}
	if len(seen) != 3 {
		t.Errorf("got the values %v, want all of 1, 2 and 3", seen)
	}
}

// TestQuotaErrorNamesTheQuota, and when the next request passes.
// TestQuotaErrorNamesTheQuota holds gateway/INTERFACE.md, "Quotas".
func TestQuotaErrorNamesTheQuota(t *testing.T) {
	for _, c := range []struct {
		err   quota.Error
		retry string
	}{
		{quota.Error{Quota: "a user may send 3 events a second", Wait: 90*time.Second + 1}, "91"},
		{quota.Error{Quota: "an instance may have 7 history entries, and this one has as many", Wait: time.Hour}, "3600"},
	} {
		s := startServer(t, Options{}, &fakeWorkflows{send: func(context.Context, *workflow.EventRequest) (*workflow.Reply, error) {
			return nil, fmt.Errorf("send to leave: %w", &c.err)
		}})
		a := s.do(t, post("event", eventBody))
		got := a.header.Get("Retry-After")
		if a.status != 429 || a.label() != "Busy" || a.message() != c.err.Quota+"; nothing was done" || got != c.retry {
			t.Errorf("got %d %s and Retry-After %q, want 429 Busy and %q", a.status, a.body, got, c.retry)
		}
	}
}
