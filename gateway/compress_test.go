package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
)

func TestAcceptsGzip(t *testing.T) {
	for line, want := range map[string]bool{
		"gzip": true, "GZip": true, "x-gzip": true, "gzip, deflate, br, zstd": true, "deflate,\tgzip;q=1.0": true, "br;q=1, gzip;q=0.8": true,
		"*": true, "*;q=0.001": true, "gzip;q=0.5, *;q=0": true, "identity;q=0, gzip;q=0.1": true, "identity;q=0.5, *;q=0.5": true, "gzip ; q=0.3": true,
		"": false, "identity": false, "br": false, "gzip;q=0": false, "gzip;q=0.000, *": false, "*;q=0": false, "x-gzip;q=0": false,
		"gzip;q=0.5, identity": false, "identity;q=0.9, *;q=0.8": false, "gzip;q=": false, "gzip;q=x": false, "gzip;q=2": false, "gzip;q=0.1234": false,
		"gzipped": false, "not-gzip": false, `"gzip"`: false, `x="a,gzip,b"`: false,
	} {
		assert.Equal(t, want, parse.AcceptsGzip([]string{line}), line)
	}
	assert.True(t, !parse.AcceptsGzip(nil) && parse.AcceptsGzip([]string{"br", "gzip"}) && !parse.AcceptsGzip([]string{"gzip;q=0", "br"}))
}

// gunzip returns what is in a packed body.
func gunzip(t testing.TB, body []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(body))
	require.NoError(t, err, "not gzip, %.60q", body)
	text, err := io.ReadAll(r)
	require.NoError(t, err, "gzip")
	return string(text)
}

// replyOf has a record whose answer is size bytes long.
func replyOf(size int) *message.Reply {
	reply := smallReply("leave", instanceOne, 5, true)
	padding := size - len(reply.AppendRecord(nil)) - len(`{"state":}`)
	reply.States = append(bytes.Repeat([]byte(" "), max(padding, 0)), reply.States...)
	return reply
}

// TestACompressedAnswerKeepsTheBuffer for the next answer.
func TestACompressedAnswerKeepsTheBuffer(t *testing.T) {
	s, err := New(Options{})
	require.NoError(t, err)
	w := newRecorder()
	x := s.kernel.Acquire(&s.kernel.Unmatched[kernel.GroupWorkflow], w, newTestRequest("GET", "/", "", "Accept-Encoding: gzip"), nil)
	x.Out = bytes.Repeat([]byte("1"), 64<<10)
	x.Send(200)
	assert.True(t, w.header.Get("Content-Encoding") == "gzip" && cap(x.Out) >= 64<<10, "%v %v", w.header.Get("Content-Encoding"), cap(x.Out))
}

// TestWhatIsCompressed holds gateway/INTERFACE.md, "Compression". It goes through who
// asks for what: the bytes mean the same, and the headers say what was done.
func TestWhatIsCompressed(t *testing.T) {
	size := kernel.GzipJSONBytesMin
	var item []byte
	s := startServer(t, Options{}, &fakeWorkflows{
		load: func(context.Context, *message.Load) (*message.Reply, error) { return replyOf(size), nil },
		send: func(_ context.Context, r *message.Event) (*message.Reply, error) {
			if r.IfMatch != nil && (len(r.IfMatch) != 1 || r.IfMatch[0] != 5) {
				return nil, fmt.Errorf("got If-Match %v: %w", r.IfMatch, failure.ErrPrecondition)
			}
			return replyOf(size), nil
		},
		query: func(_ context.Context, _ *query.Request, yield func([]byte) error) (*query.End, error) {
			return smallEnd(), yield(item)
		},
	})
	const (
		plainVary  = "Cookie, Authorization, Authentication"
		packedVary = plainVary + ", Accept-Encoding"
		gz         = "Accept-Encoding: gzip"
		session    = "Cookie: session=" + sessionAnn
		instance   = "/workflow/api/v1/instance/leave/" + instanceOne
	)
	for _, c := range []struct {
		line    string
		size    int
		request request
		packed  bool
		vary    string
	}{
		{"large enough", kernel.GzipJSONBytesMin, get(instance, gz), true, packedVary},
		{"an event", kernel.GzipJSONBytesMin, post("event", eventBody, gz), true, packedVary},
		{"a byte less", kernel.GzipJSONBytesMin - 1, get(instance, gz), false, plainVary},
		{"nobody asks", kernel.GzipJSONBytesMin, get(instance), false, packedVary},
		{"plain bytes are liked better", kernel.GzipJSONBytesMin, get(instance, "Accept-Encoding: gzip;q=0.5, identity"), false, packedVary},
		{"a session, a page of ours", kernel.GzipJSONBytesMin, request{Method: "GET", Path: instance, Headers: []string{session, gz, "Sec-Fetch-Site: same-origin"}}, true, packedVary},
		{"a session, no page", kernel.GzipJSONBytesMin, request{Method: "GET", Path: instance, Headers: []string{session, gz, "Sec-Fetch-Site: none"}}, true, packedVary},
		{"a session, another site's page", kernel.GzipJSONBytesMin, request{Method: "GET", Path: instance, Headers: []string{session, gz, "Sec-Fetch-Site: cross-site"}}, false, plainVary},
		{"a session, a sibling's page", kernel.GzipJSONBytesMin, request{Method: "GET", Path: instance, Headers: []string{session, gz, "Sec-Fetch-Site: same-site"}}, false, plainVary},
		{"a short list", kernel.GzipJSONBytesMin, get("/workflow/api/v1/instances/leave", gz), true, packedVary},
		{"a list that is streamed", 2 * kernel.StreamBytes, get("/workflow/api/v1/instances/leave", gz), false, plainVary},
		{"a watch", 0, get("/workflow/api/v1/watch/leave", gz), false, plainVary},
		{"an error", 0, get("/workflow/api/v1/nowhere", gz), false, plainVary},
		{"a page of an error", 0, request{Method: "GET", Path: "/nowhere", Headers: []string{gz, "Accept: " + browser}}, true, plainVary + ", Accept, Accept-Encoding, Accept-Language"},
		{"the login page", 0, request{Method: "GET", Path: "/login", Headers: []string{gz}}, true, packedVary + ", Accept-Language"},
	} {
		size, item = c.size, append(bytes.Repeat([]byte(" "), c.size), listedOne...)
		got := s.do(t, c.request)
		if isPacked := got.Header.Get("Content-Encoding") == "gzip"; isPacked != c.packed || len(got.Header.Values("Content-Encoding")) > 1 {
			t.Errorf("%s: Content-Encoding is %q", c.line, got.Header.Values("Content-Encoding"))
			continue
		}
		assert.Equal(t, c.vary, strings.Join(got.Header.Values("Vary"), ";"), "%s: Vary", c.line)
		if c.request.Path == instance && c.request.Method == "GET" {
			want := `"5"`
			if c.packed {
				want = `"5-gzip"`
			}
			assert.Equal(t, want, got.Header.Get("ETag"), "%s: the tag", c.line)
		}
		if !c.packed {
			continue
		}
		plain := c.request
		plain.Headers = append(slices.DeleteFunc(slices.Clone(c.request.Headers), func(h string) bool { return h == gz }), "Accept-Encoding: identity")
		text := gunzip(t, []byte(got.Body))
		assert.True(t, text == s.do(t, plain).Body && len(got.Body) < len(text), "%s: %d packed bytes are not the %d plain ones", c.line, len(got.Body), len(text))
		length := got.Header.Get("Content-Length")
		assert.False(t, length != "" && length != strconv.Itoa(len(got.Body)), "%s: Content-Length %s of %d", c.line, length, len(got.Body))
		if c.request.Method == "GET" {
			head := c.request
			head.Method = "HEAD"
			a := s.do(t, head)
			for _, name := range []string{"Content-Encoding", "ETag", "Vary", "Content-Length", "Content-Type"} {
				assert.Equal(t, got.Header.Get(name), a.Header.Get(name), "HEAD, %s: %s", c.line, name)
			}
		}
	}
	// The tag that came with packed bytes is good for an event.
	a := s.do(t, post("event", eventBody, `If-Match: "5-gzip"`))
	assert.Equal(t, 200, a.Status, "If-Match with the packed tag, %s", a.Body)
	assert.Equal(t, 412, s.do(t, post("event", eventBody, `If-Match: "6-gzip"`)).Status, "If-Match with another packed tag")
}

// TestSecretsAreNotCompressed: what gives out or names a credential is never packed,
// however long it is.
func TestSecretsAreNotCompressed(t *testing.T) {
	large := func(x *kernel.Exchange) error {
		x.Out = append(x.Out, bytes.Repeat([]byte("x"), 100_000)...)
		x.Send(http.StatusOK)
		return nil
	}
	secret := map[string]bool{"sign-in": true, "session": true, "sign-out": true, "login-provider": true, "login-callback": true}
	var table []kernel.Route
	server, err := newServer(Options{}, func(all []kernel.Route) []kernel.Route {
		for _, rt := range all {
			if rt.Access.Kinds == 0 || secret[rt.Name] {
				rt.Handle = large
				table = append(table, rt)
			}
		}
		return table
	})
	require.NoError(t, err)
	server.Open(Services{Credentials: fakeCredentials{}})
	seen := 0
	for _, rt := range table {
		w := newRecorder()
		server.ServeHTTP(w, newTestRequest(rt.Method, strings.ReplaceAll(rt.Path, ":", ""), "{}", "Cookie: session="+sessionAnn, "Content-Type: application/json", "Accept-Encoding: gzip"))
		packed := w.header.Get("Content-Encoding") != ""
		assert.True(t, w.status == 200 && packed != secret[rt.Name], "%s: got %d, packed %v, want packed %v", rt.Name, w.status, packed, !secret[rt.Name])
		if secret[rt.Name] {
			seen++
		}
	}
	assert.Equal(t, len(secret), seen, "routes are secret")
}

// FuzzNegotiation: what the readers of Accept and Accept-Encoding take, an obvious
// reader takes too.
func FuzzNegotiation(f *testing.F) {
	for _, seed := range []string{"gzip", "*;q=0.5, identity;q=0.2", "text/html, application/json;q=0.9", "a;q=1.000,b;q=0", `x="a,b";q=0.1`, ";;,,=", "gzip;q=0.0001"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		lower := strings.ToLower(line)
		assert.False(t, parse.AcceptsHTML([]string{line}) && !strings.Contains(lower, "text/html"), "%q names no HTML", line)
		assert.False(t, parse.AcceptsGzip([]string{line}) && !strings.Contains(lower, "gzip") && !strings.Contains(line, "*"), "%q takes no gzip", line)
		if strings.ContainsAny(line, `",;`) {
			return
		}
		got, want := parse.AcceptsGzip([]string{line}), parse.EqualASCII(parse.TrimBlanks(line), "gzip") || parse.EqualASCII(parse.TrimBlanks(line), "x-gzip") || parse.TrimBlanks(line) == "*"
		assert.Equal(t, want, got, line)
		for _, weight := range []string{";q=0", ";q=0.000", ";q=1.5", ";q=-1"} {
			assert.True(t, !parse.AcceptsGzip([]string{line + weight}) && !parse.AcceptsHTML([]string{line + weight}), "%q is taken", line+weight)
		}
	})
}

// BenchmarkGzip is what an answer costs to pack, and what is left of it. The case
// "anew" is the claim that the pool of compressors is worth having.
func BenchmarkGzip(b *testing.B) {
	for _, kib := range []int{1, 4, 16, 64} {
		reply := benchReply()
		for entry := reply.History; len(reply.AppendRecord(nil)) < kib<<10; {
			n := len(reply.History)
			reply.History = append(append(reply.History, ','), entry...)
			copy(reply.History[n+30:], strconv.Itoa(n*7919)) // entries are not all alike
		}
		text := reply.AppendRecord(nil)
		run := func(name string, with *kernel.GzipWriters) {
			b.Run(fmt.Sprintf("%dKiB/%s", kib, name), func(b *testing.B) {
				b.ReportAllocs()
				var small []byte
				for b.Loop() {
					if name == "anew" {
						with.Get()
					}
					small = kernel.Gzipped(text, with)
				}
				b.ReportMetric(float64(len(small))/float64(len(text)), "ratio")
			})
		}
		run("kept", &kernel.FastGzip)
		anew := kernel.NewGzipWriters(gzip.BestSpeed)
		run("anew", &anew)
	}
}
