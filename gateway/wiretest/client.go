// Package wiretest asks a service over its port, byte by byte as a test wants it, and
// reads what comes back. The tests of the interface in package gateway and those of the
// program in cmd/internal/endtoend share it. It imports nothing of the service.
//
//	c := &wiretest.Client{Address: func() (string, error) { return address, nil }}
//	ann := wiretest.User{Client: c, Credential: []string{"Authorization: svc.token " + token}}
//	r := ann.Create(t, "leave", "").Record(t)
//	ann.Event(t, "leave", r.ID, "approve", "").WantFault(t, 403, "AccessDenied")
package wiretest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// AnswerMax is when a test gives up on one request with its answer. The promise is 2 s for
// any input (persistence/PROMISES.md, "P20"), which bench measures: a machine that has other
// work is given as much time as it needs.
const AnswerMax = 2 * time.Minute

const (
	Root     = "/workflow/api/v1" // of group B
	JSONType = "Content-Type: application/json"
)

// People is the identity.yaml of most tests. ann is a clerk, bob an approver, eve has
// no role, and adm both roles and the privilege to manage workflows.
const People = `roles:
  - {id: clerk, name: Clerk, privileges: [mod-form]}
  - {id: approver, name: Approver, privileges: []}
users:
  - {id: ann, name: Ann, roles: [clerk]}
  - {id: bob, name: Bob, roles: [approver]}
  - {id: eve, name: Eve, roles: []}
  - {id: adm, name: Adam, roles: [clerk, approver], privileges: [mod-workflows]}
`

// Request is one request. The client adds Host and Content-Length; all other headers
// are those that stand here, so that a test can leave out, repeat and garble them.
type Request struct {
	Method, Path string
	Headers      []string // "Name: value"; {host} stands for the value of Host
	Body         string
}

// Text is the request as it goes over the wire.
func (r Request) Text(host string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.Method, r.Path, host)
	for _, h := range r.Headers {
		b.WriteString(strings.ReplaceAll(h, "{host}", host) + "\r\n")
	}
	if r.Body != "" || r.Method == http.MethodPost {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.Body))
	}
	b.WriteString("\r\n" + r.Body)
	return b.Bytes()
}

// Client asks one service.
type Client struct {
	Address func() (string, error) // "host:port", when the service listens
	Base    string                 // the base path; a Request has it in its Path
	// Connect opens the connections of Try and Send in place of Dial, when it is set.
	Connect func() (net.Conn, error)
}

// Dial opens a connection to the service.
func (c *Client) Dial() (*net.TCPConn, error) {
	address, err := c.Address()
	if err != nil {
		return nil, err
	}
	conn, err := net.DialTimeout("tcp", address, AnswerMax)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), conn.SetDeadline(time.Now().Add(AnswerMax))
}

func (c *Client) connect() (net.Conn, error) {
	if c.Connect != nil {
		return c.Connect()
	}
	return c.Dial()
}

// Try asks on a connection of its own.
func (c *Client) Try(r Request) (Answer, error) {
	conn, err := c.connect()
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = conn.Close() }()
	// NB: a server that refuses early answers while the body is on its way, so
	// that writing may fail and there is an answer nevertheless.
	_, written := conn.Write(r.Text(conn.RemoteAddr().String()))
	got, err := ReadAnswer(bufio.NewReader(conn), r.Method)
	if err != nil {
		err = errors.Join(err, written)
	}
	return got, err
}

// Send asks, and requires an answer.
func (c *Client) Send(t testing.TB, r Request) Answer {
	t.Helper()
	got, err := c.Try(r)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.Path, err)
	}
	return got
}

// AtOnce sends copies of a request at the same time, each on its own connection.
func (c *Client) AtOnce(t testing.TB, copies int, r Request) []Answer {
	t.Helper()
	answers, errs := make([]Answer, copies), make([]error, copies)
	begin := make(chan struct{})
	var done sync.WaitGroup
	for i := range copies {
		done.Go(func() {
			<-begin
			answers[i], errs[i] = c.Try(r)
		})
	}
	close(begin)
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return answers
}

// Raw writes bytes that need not be HTTP, ends its side of the connection, and returns all answers that came back.
// Whether the connection was then closed in order does not matter.
func (c *Client) Raw(t testing.TB, text string) []Answer {
	t.Helper()
	conn, err := c.Dial()
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(conn, text) // the answers say what happened to it
		_ = conn.CloseWrite()
	}()
	defer func() { _ = conn.Close(); <-sent }()
	r := bufio.NewReader(conn)
	method, _, _ := strings.Cut(text, " ")
	var answers []Answer
	for {
		if _, err := r.Peek(1); err != nil {
			return answers
		}
		a, err := ReadAnswer(r, method)
		if err != nil {
			t.Fatalf("after %d answers: %v", len(answers), err)
		}
		answers = append(answers, a)
	}
}

// User asks in the name of somebody.
type User struct {
	*Client
	Credential []string // header lines
}

// Get sends GET for a path below the base path.
func (u User) Get(t testing.TB, path string) Answer {
	t.Helper()
	return u.Send(t, Request{Method: http.MethodGet, Path: u.Base + path, Headers: u.Credential})
}

// Post sends POST with a body of JSON.
func (u User) Post(t testing.TB, path, body string, headers ...string) Answer {
	t.Helper()
	return u.Send(t, u.Posting(path, body, headers...))
}

// Posting is the request that Post sends.
func (u User) Posting(path, body string, headers ...string) Request {
	all := append([]string{JSONType}, u.Credential...)
	return Request{Method: http.MethodPost, Path: u.Base + path, Headers: append(all, headers...), Body: body}
}

// Create sends POST create; content is the JSON of data, "" for none.
func (u User) Create(t testing.TB, workflow, content string, headers ...string) Answer {
	t.Helper()
	return u.Post(t, Root+"/create", CreateBody(workflow, content), headers...)
}

// CreateBody is the body that Create sends.
func CreateBody(workflow, content string) string {
	if content != "" {
		content = `,"data":` + content
	}
	return `{"workflowId":"` + workflow + `"` + content + `}`
}

// Event sends POST event; content is the JSON of event.data, "" for none.
func (u User) Event(t testing.TB, workflow, instance, name, content string, headers ...string) Answer {
	t.Helper()
	return u.Post(t, Root+"/event", EventBody(workflow, instance, name, content), headers...)
}

// EventBody is the body that Event sends.
func EventBody(workflow, instance, name, content string) string {
	if content != "" {
		content = `,"data":` + content
	}
	return `{"workflowId":"` + workflow + `","instanceId":"` + instance + `","event":{"name":"` + name + `"` + content + `}}`
}

// Load sends GET instance.
func (u User) Load(t testing.TB, workflow, instance string) Answer {
	t.Helper()
	return u.Get(t, Root+"/instance/"+workflow+"/"+instance)
}
