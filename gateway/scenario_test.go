package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/workflow"
)

// TestScenarios runs the scripts of testdata/scenario, one situation a file.
// With -rewrite it writes what comes out. The commands:
//
//	fail <error>     every call of the workflows answers with this error
//	send             a request: its line, its headers, an empty line, its body
//	                 ANN, BOB and SESSION stand for credentials
//
// The answer to send is the status, the headers that are not the same in every
// answer, and the body.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenario", func(t *testing.T, path string) {
		var fail error
		workflows := &fakeWorkflows{
			create: func(_ context.Context, r *workflow.CreateRequest) (*workflow.Reply, error) {
				return smallReply(r.WorkflowID, instanceOne, 1, r.WithHistory), fail
			},
			send: func(_ context.Context, r *workflow.EventRequest) (*workflow.Reply, error) {
				return smallReply(r.WorkflowID, r.InstanceID, 2, r.WithHistory), fail
			},
			load: func(_ context.Context, r *workflow.LoadRequest) (*workflow.Reply, error) {
				return smallReply(r.WorkflowID, r.InstanceID, 2, r.WithHistory), fail
			},
			choices: []catalog.Choice{{ID: "leave", Name: "Leave request"}},
		}
		server, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		server.Open(Services{Workflows: workflows, Credentials: fakeCredentials{}})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "fail":
				known := false
				if fail, known = map[string]error{
					"not": nil, "ErrExecution": failure.ErrExecution, "ErrForbidden": failure.ErrForbidden, "ErrInstanceBusy": failure.ErrInstanceBusy,
					"ErrOutcomeUnknown": failure.ErrOutcomeUnknown, "ErrPrecondition": failure.ErrPrecondition,
				}[d.CmdArgs[0].Key]; !known {
					d.Fatalf(t, "no such error")
				}
				return ""
			case "send":
				return play(t, server, d.Input)
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

// play sends the request of a script and writes down the answer.
func play(t *testing.T, server *Server, input string) string {
	input = strings.NewReplacer("ANN", tokenAnn, "BOB", tokenBob, "SESSION", sessionAnn).Replace(input)
	head, body, _ := strings.Cut(input, "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	method, target, _ := strings.Cut(lines[0], " ")
	w := newRecorder()
	observe(t, server).ServeHTTP(w, newTestRequest(method, target, strings.TrimSpace(body), lines[1:]...))
	var out strings.Builder
	fmt.Fprintln(&out, w.status)
	var names []string
	for name := range w.header {
		switch name {
		case "Cache-Control", "Vary", "X-Content-Type-Options", "Content-Type":
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		value := strings.Join(w.header[name], " | ")
		if name == "Retry-After" {
			value = "(some seconds)"
		}
		fmt.Fprintf(&out, "%s: %s\n", name, value)
	}
	text := w.body.String()
	if at := strings.Index(text, server.idPrefix); at >= 0 { // an id is new in each run
		text = text[:at] + `(id)"}`
	}
	fmt.Fprintln(&out, text)
	return out.String()
}
