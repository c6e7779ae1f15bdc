package gateway_test

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

// answerMax bounds one request with its answer. The promise is 2 s for any input
// (persistence/PROMISES.md, "P20"); a machine shared with others is given more.
const answerMax = 10 * time.Second

// ask is one request. The client adds Host, Connection and Content-Length; all
// other headers are those that stand here, so that a test can leave out, repeat
// and garble them.
type ask struct {
	method, path string
	headers      []string // "Name: value"
	body         string
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
	closes bool // the server ends the connection behind it
}

// text writes the request as it goes over the wire.
func (a ask) text(host string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", a.method, a.path, host)
	for _, h := range a.headers {
		b.WriteString(h + "\r\n")
	}
	if a.body != "" || a.method == http.MethodPost {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(a.body))
	}
	b.WriteString("\r\n" + a.body)
	return b.Bytes()
}

// send asks the service and demands an answer.
func (s *service) send(t testing.TB, a ask) answer {
	t.Helper()
	got, err := s.try(a)
	if err != nil {
		t.Fatalf("%s %s: %v", a.method, a.path, err)
	}
	return got
}

// try asks on a connection of its own.
func (s *service) try(a ask) (answer, error) {
	conn, err := s.dial()
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = conn.Close() }()
	// NB: a server that refuses early answers while the body is on its way, so
	// that writing may fail and there is an answer nevertheless.
	_, written := conn.Write(a.text(conn.RemoteAddr().String()))
	got, err := readAnswer(bufio.NewReader(conn), a.method)
	return got, errors.Join(err, errorIf(err != nil, written))
}

func errorIf(condition bool, err error) error {
	if condition {
		return err
	}
	return nil
}

// atOnce sends copies of a request at the same time, each on its own connection.
func (s *service) atOnce(t testing.TB, copies int, a ask) []answer {
	t.Helper()
	answers, errs := make([]answer, copies), make([]error, copies)
	begin := make(chan struct{})
	var done sync.WaitGroup
	for i := range copies {
		done.Go(func() {
			<-begin
			answers[i], errs[i] = s.try(a)
		})
	}
	close(begin)
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return answers
}

// dial opens a connection to the service.
func (s *service) dial() (*net.TCPConn, error) {
	conn, err := net.DialTimeout("tcp", s.address, answerMax)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(answerMax)); err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// readAnswer reads one answer.
func readAnswer(r *bufio.Reader, method string) (answer, error) {
	res, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		return answer{}, fmt.Errorf("read the answer: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, fmt.Errorf("read the answer's body: %w", err)
	}
	return answer{status: res.StatusCode, header: res.Header, body: string(body), closes: res.Close}, nil
}

// raw writes bytes that need not be HTTP, ends its side of the connection, and
// returns all answers that came back. Whether the connection was then closed in
// order does not matter.
func (s *service) raw(t testing.TB, text string) []answer {
	t.Helper()
	conn, err := s.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, text) // the answers say what became of it
	_ = conn.CloseWrite()
	r := bufio.NewReader(conn)
	method, _, _ := strings.Cut(text, " ")
	var answers []answer
	for {
		if _, err := r.Peek(1); err != nil {
			return answers
		}
		a, err := readAnswer(r, method)
		if err != nil {
			t.Fatalf("after %d answers: %v", len(answers), err)
		}
		answers = append(answers, a)
	}
}

// user asks in the name of somebody.
type user struct {
	*service
	credential []string // header lines
}

// with adds header lines to each request.
func (u user) with(headers ...string) user {
	u.credential = append(u.credential[:len(u.credential):len(u.credential)], headers...)
	return u
}

const (
	root     = "/workflow/api/v1"
	jsonType = "Content-Type: application/json"
)

func (u user) get(t testing.TB, path string) answer {
	t.Helper()
	return u.send(t, ask{method: http.MethodGet, path: u.base + path, headers: u.credential})
}

func (u user) post(t testing.TB, path, body string, headers ...string) answer {
	t.Helper()
	return u.send(t, u.posting(path, body, headers...))
}

// posting is the request that post sends.
func (u user) posting(path, body string, headers ...string) ask {
	all := append([]string{jsonType}, u.credential...)
	return ask{method: http.MethodPost, path: u.base + path, headers: append(all, headers...), body: body}
}

// create sends POST create; content is the JSON of data, "" for none.
func (u user) create(t testing.TB, workflow, content string, headers ...string) answer {
	t.Helper()
	return u.post(t, root+"/create", createBody(workflow, content), headers...)
}

func createBody(workflow, content string) string {
	if content == "" {
		return `{"workflowId":"` + workflow + `"}`
	}
	return `{"workflowId":"` + workflow + `","data":` + content + `}`
}

// event sends POST event; content is the JSON of event.data, "" for none.
func (u user) event(t testing.TB, workflow, instance, name, content string, headers ...string) answer {
	t.Helper()
	return u.post(t, root+"/event", eventBody(workflow, instance, name, content), headers...)
}

func eventBody(workflow, instance, name, content string) string {
	if content != "" {
		content = `,"data":` + content
	}
	return `{"workflowId":"` + workflow + `","instanceId":"` + instance + `","event":{"name":"` + name + `"` + content + `}}`
}

// load sends GET instance.
func (u user) load(t testing.TB, workflow, instance string) answer {
	t.Helper()
	return u.get(t, root+"/instance/"+workflow+"/"+instance)
}
