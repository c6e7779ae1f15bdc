package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"troupe/gateway/servertest"
)

// TestCalls plays testdata: what a client gets from a service, and what it has sent.
//
//	start [notice]           the service from here on
//	create [EVENT]...        makes an instance beside the client, from its svcPublic, and sends it events
//	send ID EVENT            sends an event beside the client
//	revise NODE NAME         publishes another version
//	fail OPERATION           the faults that come in place of answers
//	answer STATUS            a service that gives each request one answer: a body, or a Location
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
	cursor     = regexp.MustCompile(`("(?:[nN]ext|Since)":"|(?:cursor|since)=)[^"&, ]{6,}`)
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
	case "answer":
		status, err := strconv.Atoi(args[0])
		require.NoError(t, err)
		header, body := "", input
		if strings.HasPrefix(input, "Location: ") {
			header, body = input, ""
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
	out = cursor.ReplaceAllString(changing.ReplaceAllString(strings.ReplaceAll(out, many, "{many}"), "$1<n>"), "$1<cursor>")
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
