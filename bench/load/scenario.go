package load

import (
	_ "embed" // for the texts below
)

// UserID is the user of Identity whose token a run needs.
const UserID = "bench"

// WorkflowID is the workflow of Definition.
const WorkflowID = "leave-request"

// Definition is the text of the workflow that a run sends events to. The server
// must have it.
//
//go:embed leave-request.yaml
var Definition string

// Identity is the text of an identity.yaml with the user of a run.
//
//go:embed identity.yaml
var Identity string

// createData is the data of every new instance, as JSON.
const createData = `{"svcPublic":{"requester":"bench","days":3,"from":"2026-12-01","reason":"a few days in the mountains"}}`

// move is an event and the node that it leads to.
type move struct {
	event, data, node string
}

// moves go round: an instance starts before the first.
var moves = [...]move{
	{"submit", `{"days":3,"status":"waiting","comment":"my calendar is free, and so is the hut"}`, "review"},
	{"return", `{"status":"returned","comment":"please say who stands in for you"}`, "draft"},
}

// Turn returns the event that an instance gets after n events, with its data as
// JSON, and the node that it leads to.
func Turn(n int) (event, data, node string) {
	m := &moves[n%len(moves)]
	return m.event, m.data, m.node
}

// CreateData returns the two documents of a new instance as JSON; private is
// empty when there is none.
func CreateData() (public, private string) {
	const head, tail = `{"svcPublic":`, `}`
	return createData[len(head) : len(createData)-len(tail)], ""
}

// Kind is what a request asks for.
type Kind int

// The kinds of requests.
const (
	Create Kind = iota
	Event
	Read
	kinds
)

// String returns the word that a mix uses.
func (k Kind) String() string { return [...]string{"create", "event", "read"}[k] }

// script writes requests, each whole, for one connection.
type script struct {
	head [kinds]string // request line and headers up to the length of the body
	out  []byte        // the last request; reused
	body []byte        // likewise
}

// newScript prepares what is the same in all requests.
func newScript(o *Options) *script {
	headers := " HTTP/1.1\r\nHost: " + o.Addr + "\r\n"
	if o.Token != "" {
		headers += "Authorization: svc.token " + o.Token + "\r\n"
	}
	if o.Minimal {
		headers += "Prefer: return=minimal\r\n"
	}
	const post = "Content-Type: application/json\r\nContent-Length: "
	s := &script{}
	s.head[Create] = "POST /workflow/api/v1/create" + headers + post
	s.head[Event] = "POST /workflow/api/v1/event" + headers + post
	s.head[Read] = headers + "\r\n"
	return s
}

// create returns a request for a new instance. Like all results of a script it
// is good until the next one.
func (s *script) create() []byte {
	s.body = append(s.body[:0], `{"workflowId":"`+WorkflowID+`","data":`...)
	s.body = append(s.body, createData...)
	s.body = append(s.body, '}')
	return s.post(Create)
}

// event returns a request that sends m to an instance.
func (s *script) event(instance string, m *move) []byte {
	s.body = append(s.body[:0], `{"workflowId":"`+WorkflowID+`","instanceId":"`...)
	s.body = append(s.body, instance...)
	s.body = append(s.body, `","event":{"name":"`...)
	s.body = append(s.body, m.event...)
	s.body = append(s.body, `","data":`...)
	s.body = append(s.body, m.data...)
	s.body = append(s.body, `}}`...)
	return s.post(Event)
}

func (s *script) post(k Kind) []byte {
	s.out = append(s.out[:0], s.head[k]...)
	s.out = appendLength(s.out, len(s.body))
	s.out = append(s.out, "\r\n\r\n"...)
	s.out = append(s.out, s.body...)
	return s.out
}

// read returns a request for an instance.
func (s *script) read(instance string) []byte {
	s.out = append(s.out[:0], "GET /workflow/api/v1/instance/"+WorkflowID+"/"...)
	s.out = append(s.out, instance...)
	s.out = append(s.out, s.head[Read]...)
	return s.out
}
