package client

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"troupe/gateway/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect makes a client of a service that waits only a moment.
func connect(t *testing.T, address string, o Options) *Client {
	t.Helper()
	o.Address = address
	o.RetryWait = cmp.Or(o.RetryWait, 1)
	c, err := New(o)
	require.NoError(t, err, "New")
	t.Cleanup(c.Close)
	return c
}

func started(t *testing.T, o Options) (*servertest.Server, *Client) {
	t.Helper()
	s := servertest.Start(t)
	o.Token = s.Token
	return s, connect(t, s.URL, o)
}

// unkept makes a connection for each request: net/http repeats a read by itself on
// one that was kept.
func unkept() *http.Client { return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} }

func wantStatus(t *testing.T, err error, status int, code string) {
	t.Helper()
	var refused *Error
	assert.True(t, errors.As(err, &refused) && refused.Status == status && refused.Code == code, "got %v, want an Error %d %s", err, status, code)
}

func handled(t *testing.T, o Options, handle http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return connect(t, s.URL, o)
}

func answering(t *testing.T, status int, header, body string) *Client {
	t.Helper()
	return handled(t, Options{BodyBytesMax: 1000, EventBytesMax: 1000, RetryMax: -1}, func(w http.ResponseWriter, _ *http.Request) {
		if name, value, ok := strings.Cut(header, ": "); ok {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"Ana é 日本 😀 a\\b":         "Ana é 日本 😀 a\\b",
		"a\tb\nc\x1b[31m\x00\x7f": `a\tb\nc\x1b[31m\x00\x7f`,
		"\u009b31m":               `\u009b31m`,          // C1
		"a\u202eb\u2066":          `a\u202eb\u2066`,     // direction
		"\u2028\u2029\u0085":      `\u2028\u2029\u0085`, // line separators
		"a\xff\xc3":               `a\xff\xc3`,          // no UTF-8
		"�":                       "�",
	} {
		assert.Equal(t, want, Printable(text))
	}
}

// TestBasePath holds that a service behind a path is found there.
func TestBasePath(t *testing.T) {
	var asked string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		_, _ = w.Write([]byte(`{"workflows":[]}`))
	}))
	defer s.Close()
	c := connect(t, s.URL+"/platform/", Options{})
	_, err := c.Choices(t.Context())
	assert.True(t, err == nil && asked == "/platform/workflow/api/v1/choices", "got %q, %v", asked, err)
}

// TestConnectionsAreKept holds that answers, errors too, are read to their end.
// It runs on a false clock, which stands still while anybody works or waits for
// the network: net/http gives a connection up that is not ready again 50 ms after
// the answer.
func TestConnectionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connections := 0
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"error":"NotFound","message":"` + strings.Repeat("m", 20_000) + `"}`))
		}))
		s.Config.ConnState = countNew(&connections)
		s.Start()
		c := connect(t, s.URL, Options{})
		for range 5 {
			_, err := c.Choices(t.Context())
			wantStatus(t, err, 404, "NotFound")
		}
		s.Close() // no connection is counted any more
		assert.Equal(t, 1, connections)
	})
}

// TestPackedAnswers: the package's own client asks for plain bytes; a caller's own may
// ask for packed ones, and their tag says the same.
func TestPackedAnswers(t *testing.T) {
	asked := make(chan string, 1)
	pack := func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Accept-Encoding")
		text := []byte(`{"state":{"_id":"i1","workflowId":"w"}}`)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"5"`)
		if r.Header.Get("Accept-Encoding") == "gzip" {
			w.Header().Set("ETag", `"5-gzip"`)
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			_, _ = packed.Write(text)
			_ = packed.Close()
			return
		}
		_, _ = w.Write(text)
	}
	for want, own := range map[string]*http.Client{"": nil, "gzip": unkept()} {
		got, err := handled(t, Options{HTTP: own}, pack).Instance(t.Context(), InstanceRequest{WorkflowID: "w", InstanceID: "i1"})
		assert.Equal(t, want, <-asked, "asked")
		assert.True(t, err == nil && got.Sequence == 5, "asked for %q: got %+v, %v, want sequence 5", want, got, err)
	}
}

// TestDataStaysAsItIs: what came is kept as it came, and what is no JSON is not sent.
func TestDataStaysAsItIs(t *testing.T) {
	s, c := started(t, Options{})
	public := `{"z":1e400,"a":12345678901234567890.10,"html":"<&>"}`
	made, err := c.Create(t.Context(), CreateRequest{WorkflowID: "leave", Public: json.RawMessage(public)})
	require.NoError(t, err)
	assert.Equal(t, public, string(made.Public))
	assert.Contains(t, string(made.Raw), public)
	page, err := c.History(t.Context(), HistoryRequest{WorkflowID: "leave", InstanceID: made.ID})
	require.NoError(t, err)
	assert.Contains(t, string(page.Items[0].Raw), `"ts":"2026-11-21T10:00:0`)
	sent := len(s.Requests())
	_, err = c.Create(t.Context(), CreateRequest{WorkflowID: "leave", Public: json.RawMessage("{")})
	require.ErrorIs(t, err, ErrInvalid)
	for _, wrong := range [][]json.RawMessage{{[]byte("{")}, make([]json.RawMessage, BatchMax+1)} {
		_, err := c.Batch(t.Context(), BatchRequest{Items: wrong})
		require.ErrorIs(t, err, ErrInvalid)
	}
	assert.Len(t, s.Requests(), sent)
}

// TestCalls plays testdata: what a client gets from a service, and what it has sent.
//
//	start [notice]           the service from here on
//	create [EVENT]...        makes an instance beside the client, from its svcPublic, and sends it events
//	send ID EVENT            sends an event beside the client
//	revise NODE NAME         publishes another version
//	fail OPERATION           the faults that come in place of answers
//	new                      what is wrong with options
//	answer STATUS            a service that gives each request one answer: a header or none, and a body
//	METHOD [headers] [N]     a call with its arguments, one in a line of JSON: the result, without what is zero, and the requests with
//	                         what differs of their headers, or all; of pages the first N
//
// $1, $2 are the ids of instances in the order in which they are seen, and $next is the cursor that came last.
func TestCalls(t *testing.T) {
	datadriven.Walk(t, "testdata/calls", func(t *testing.T, path string) {
		c := &calls{t: t}
		datadriven.RunTest(t, path, c.play)
	})
}

type calls struct {
	t *testing.T
	*servertest.Server
	client *Client
	waits  *[]time.Duration
	ids    []string
	next   string
}

var (
	instanceID = regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b`)
	cursor     = regexp.MustCompile(`("(?:[nN]ext|Since)":"|(?:cursor|since)=)[^"&, ]{6,}|("ID":")A[\w-]{21,}`)
	changing   = regexp.MustCompile(`("milliseconds":|127\.0\.0\.1:)[0-9.e-]+`)
	next       = regexp.MustCompile(`"[nN]ext":"([^"]+)"`)
	many       = strings.Repeat("a", 1000)
	named      = regexp.MustCompile(`\$(\d)`)
)

func (c *calls) play(t *testing.T, d *datadriven.TestData) string {
	input := named.ReplaceAllStringFunc(strings.NewReplacer("{many}", many, "$next", c.next).Replace(d.Input), func(name string) string {
		n, _ := strconv.Atoi(name[1:])
		return c.ids[n-1]
	})
	var args []string
	for _, arg := range d.CmdArgs {
		args = append(args, arg.Key)
	}
	switch d.Cmd {
	case "start":
		if c.ids = nil; len(args) == 0 {
			c.Server = servertest.Start(c.t)
		} else {
			var id string
			c.Server, id = servertest.StartNotice(c.t)
			c.ids = []string{id}
		}
		c.client = connect(c.t, c.URL, Options{Token: c.Token, HTTP: unkept()})
		c.waits = recorded(c.client)
	case "create":
		c.ids = append(c.ids, c.Create(input, args...))
	case "send":
		c.Send(named.ReplaceAllStringFunc(args[0], func(string) string { return c.ids[0] }), args[1])
	case "revise":
		c.Revise(args[0], args[1])
	case "fail":
		for line := range strings.SplitSeq(input, "\n") {
			var f servertest.Fault
			require.NoError(t, json.Unmarshal([]byte(line), &f))
			c.Fail(args[0], f)
		}
	case "new":
		var o Options
		require.NoError(t, json.Unmarshal([]byte(input), &o))
		_, err := New(o)
		return resultOf(t, reflect.ValueOf(&err).Elem())
	case "answer":
		status, err := strconv.Atoi(args[0])
		require.NoError(t, err)
		header, body := "", input
		if strings.HasPrefix(input, "Location: ") || strings.HasPrefix(input, "Content-Type: ") {
			header, body, _ = strings.Cut(input+"\n\n", "\n")
		}
		c.Server, c.client = nil, answering(c.t, status, header, body)
	default:
		return c.call(t, reflect.ValueOf(c.client).MethodByName(d.Cmd), strings.Fields(strings.Join(args, " ")), input)
	}
	return ""
}

func (c *calls) call(t *testing.T, method reflect.Value, args []string, input string) string {
	var requests []servertest.Request
	if c.Server != nil {
		requests, *c.waits = c.Requests(), nil
	}
	in := []reflect.Value{reflect.ValueOf(t.Context())}
	for line := range strings.SplitSeq(input, "\n") {
		if line != "" {
			v := reflect.New(method.Type().In(len(in)))
			require.NoError(t, json.Unmarshal([]byte(line), v.Interface()))
			in = append(in, v.Elem())
		}
	}
	out := ""
	for _, v := range method.Call(in) {
		if v.Kind() != reflect.Func {
			out += resultOf(t, v)
			continue
		}
		pages := 0
		for page, err := range v.Seq2() {
			out += resultOf(t, page) + resultOf(t, err)
			if pages++; slices.Contains(args, strconv.Itoa(pages)) {
				break
			}
			require.Less(t, pages, 9, "it does not end")
		}
	}
	if c.Server != nil {
		last := ""
		for _, r := range c.Requests()[len(requests):] {
			line := c.request(r, slices.Contains(args, "headers"))
			if key := r.Header.Get("Idempotency-Key"); len(key) >= 22 {
				line, out = strings.ReplaceAll(line, key, "<key>"), strings.ReplaceAll(out, key, "<key>")
			}
			if line == last {
				line = "  the same again\n"
			} else {
				last = line
			}
			out += line
		}
		if n := len(*c.waits); n > 0 {
			out += fmt.Sprintf("waited %d times\n", n)
		}
	}
	for _, m := range next.FindAllStringSubmatch(out, -1) {
		c.next = m[1]
	}
	out = cursor.ReplaceAllString(changing.ReplaceAllString(strings.ReplaceAll(out, many, "{many}"), "$1<n>"), "$1$2<cursor>")
	return instanceID.ReplaceAllStringFunc(out, func(id string) string {
		if !slices.Contains(c.ids, id) {
			c.ids = append(c.ids, id)
		}
		return "$" + strconv.Itoa(slices.Index(c.ids, id)+1)
	})
}

// request writes down what has arrived: of the headers what differs, or all.
func (c *calls) request(r servertest.Request, all bool) string {
	line := r.Method + " " + strings.TrimSuffix(r.Path+"?"+r.Query.Encode(), "?")
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if all && name != "Content-Length" || slices.Contains([]string{"Idempotency-Key", "If-Match", "Prefer", "Last-Event-Id"}, name) {
			line += " " + name + ": " + strings.ReplaceAll(r.Header.Get(name), c.Token, "<token>")
		}
	}
	return strings.TrimSpace(line+" "+r.Body) + "\n"
}

// resultOf is a result, or an error with what it wraps.
func resultOf(t *testing.T, v reflect.Value) string {
	if slices.Contains([]reflect.Kind{reflect.Interface, reflect.Pointer, reflect.Slice}, v.Kind()) && v.IsNil() {
		return ""
	}
	if err, ok := v.Interface().(error); ok {
		text := fmt.Sprintf("error: %v", err)
		for name, kind := range map[string]error{" (invalid)": ErrInvalid, " (protocol)": ErrProtocol, " (unknown outcome)": ErrOutcomeUnknown} {
			if errors.Is(err, kind) {
				text += name
			}
		}
		if refused := (*Error)(nil); errors.As(err, &refused) {
			text += fmt.Sprintf(" (%d %s)", refused.Status, refused.Code)
			for _, f := range refused.Faults {
				text += fmt.Sprintf(" %+v", f)
			}
		}
		return text + "\n"
	}
	text, err := json.Marshal(v.Interface())
	require.NoError(t, err)
	var of any
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	require.NoError(t, in.Decode(&of))
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	require.NoError(t, enc.Encode(withoutZeros(of)))
	return out.String()
}

func isZero(v any) bool { return v == nil || v == "" || v == false || v == json.Number("0") }

func withoutZeros(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if v[name] = withoutZeros(value); isZero(v[name]) {
				delete(v, name)
			} else if name == "Raw" {
				v[name] = "<raw>"
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutZeros(v[i])
		}
	}
	return v
}
