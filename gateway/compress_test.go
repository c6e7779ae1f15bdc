package gateway

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/console"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/login"
	"troupe/gateway/reference"
	"troupe/statemachine"
)

func gunzip(t testing.TB, body []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(body))
	require.NoError(t, err, "not gzip, %.60q", body)
	text, err := io.ReadAll(r)
	require.NoError(t, err, "gzip")
	return string(text)
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

func assetName(t testing.TB) string {
	t.Helper()
	found := regexp.MustCompile(`src="\./assets/([^"]+\.js)"`).FindSubmatch(console.Shell("", console.PageWork))
	require.NotNil(t, found, "the shell names no script: %s", console.Shell("", console.PageWork))
	return string(found[1])
}

func isWorthPacking(page string) bool { return len(page) >= kernel.GzipPageBytesMin }

// TestStaticFiles holds what the program serves of its own: to everybody, below the base
// path, packed once for those who take that, and with a tag for each form
// (gateway/INTERFACE.md, "Compression").
func TestStaticFiles(t *testing.T) {
	const html, ofItself = "text/html; charset=utf-8", "-" // the body that came is the one to compare with
	script, _, _ := console.Asset(assetName(t))
	for _, base := range []string{"", "/platform"} {
		s := startServer(t, Options{BasePath: base}, nil)
		shellOf := func(page console.Page) string { return string(console.Shell(base, page)) }
		shell := shellOf(console.PageWork)
		for _, c := range []struct {
			path, contentType, cache, policy, body string
			tagged, packed                         bool // what is small is not worth packing
		}{
			{"/", html, "no-cache", console.Policy, shell, true, isWorthPacking(shell)},
			{"/?kind=checklists&show=archived", html, "no-cache", console.Policy, shell, true, isWorthPacking(shell)},
			{"/form-runtime/f/-/i/index.html", html, "no-cache", console.Policy, shellOf(console.PageForm), true, isWorthPacking(shellOf(console.PageForm))},
			{"/instances/w/i", html, "no-cache", console.Policy, shellOf(console.PageInstance), true, isWorthPacking(shellOf(console.PageInstance))},
			{"/operations?section=incidents", html, "no-cache", console.Policy, shellOf(console.PageOperations), true, isWorthPacking(shellOf(console.PageOperations))},
			{"/form-runtime/f/w/i/index.html?x=%zz", html, "no-cache", console.Policy, shellOf(console.PageForm), true, isWorthPacking(shellOf(console.PageForm))},
			{"/assets/" + assetName(t), "text/javascript; charset=utf-8", "public, max-age=31536000, immutable", "", string(script), true, true},
			{"/login/style.css", "text/css; charset=utf-8", "no-store", "", string(login.Style()), false, true},
			{"/login/script.js", "text/javascript; charset=utf-8", "no-store", "", string(login.Script()), false, true},
			{"/favicon.ico", "image/vnd.microsoft.icon", "public, max-age=86400", "", string(login.Icon()), true, false},
			{"/openapi.yaml", "application/yaml", console.ShellCache, "", string(openapiYAML), true, true},
			{"/openapi.json", "application/json", console.ShellCache, "", ofItself, true, true},
			{"/schemas/definition.schema.json", "application/schema+json", console.ShellCache, "", statemachine.DefinitionSchema(), true, true},
			{"/docs", html, console.ShellCache, reference.Policy, ofItself, true, true},
		} {
			ask := func(headers ...string) answer { return s.do(t, request{Method: "GET", Path: c.path, Headers: headers}) }
			plain, packed := ask(), ask("Accept-Encoding: zstd, gzip")
			if c.body == ofItself {
				c.body = plain.Body
			}
			assert.True(t, plain.Status == 200 && plain.Body == c.body, "%s: got %d %.200s", c.path, plain.Status, plain.Body)
			vary, encoding := "Cookie, Authorization, Authentication", ""
			if c.packed {
				vary, encoding, packed.Body = vary+", Accept-Encoding", "gzip", gunzip(t, []byte(packed.Body))
			}
			assert.True(t, packed.Status == 200 && packed.Body == c.body, "%s: the packed bytes are not the plain ones", c.path)
			common := map[string]string{"Content-Type": c.contentType, "Cache-Control": c.cache, "Vary": vary, "Content-Security-Policy": c.policy}
			if c.policy == console.Policy {
				maps.Copy(common, map[string]string{"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin"})
			}
			checkHeaders(t, c.path, plain.Header, common)
			common["Content-Encoding"] = encoding
			checkHeaders(t, c.path, packed.Header, common)
			tag, packedTag := plain.Header.Get("ETag"), packed.Header.Get("ETag")
			want := console.Tag([]byte(c.body))
			if name, ok := strings.CutPrefix(c.path, "/assets/"); ok {
				want = strconv.Quote(name) // which has a hash
			}
			assert.True(t, (tag != "") == c.tagged && (!c.tagged || tag == want) && (tag != packedTag) == (c.tagged && c.packed), "%v %v %v", c.path, tag, packedTag)
			if !c.tagged {
				continue
			}
			for line, want := range map[string]int{
				tag: 304, `"other", ` + tag: 304, "W/" + tag: 304, "*": 304, `"other"`: 200, "": 200, "garbage": 200, tag + "x": 200, `"` + tag: 200,
			} {
				a := ask("If-None-Match: " + line)
				assert.True(t, a.Status == want && (a.Status != 304 || a.Body == ""), "%v %v %v %v %v", c.path, line, a.Status, len(a.Body), want)
			}
			if c.packed {
				a, b := ask("Accept-Encoding: gzip", "If-None-Match: "+packedTag), ask("Accept-Encoding: gzip", "If-None-Match: "+tag)
				assert.True(t, a.Status == 304 && b.Status == 200, "%s, packed: got %d with its tag and %d with that of the plain bytes", c.path, a.Status, b.Status)
			}
		}
		for _, name := range []string{"no.js", "..%2findex.html", "index.html", "licenses.md", "%00.js", ".js"} {
			assert.Equal(t, 404, s.do(t, request{Method: "GET", Path: "/assets/" + name}).Status, name)
		}
	}
}

// TestBrotli holds that the files of the pages come in brotli for those who take that, from
// the second request on, and never for others (gateway/INTERFACE.md, "Compression").
func TestBrotli(t *testing.T) {
	s := startServer(t, Options{}, nil)
	name := assetName(t)
	script, _, _ := console.Asset(name)
	ask := func(headers ...string) answer {
		return s.do(t, request{Method: "GET", Path: "/assets/" + name, Headers: headers})
	}
	a := ask("Accept-Encoding: gzip, br")
	assert.NotEmpty(t, a.Header.Get("Content-Encoding"), "the first request is not packed at all: %v", a.Header)
	s.kernel.Packing.Wait()
	packed := ask("Accept-Encoding: gzip, deflate, br, zstd")
	unpacked, err := io.ReadAll(brotli.NewReader(strings.NewReader(packed.Body)))
	assert.True(t, err == nil && string(unpacked) == string(script) && packed.Header.Get("Content-Encoding") == "br" && packed.Header.Get("ETag") == `"`+name+`-br"`,
		"got %v, %d bytes, %v", packed.Header, len(unpacked), err)
	vary := packed.Header.Get("Vary")
	assert.True(t, strings.HasSuffix(vary, "Accept-Encoding"), "got Vary %s", vary)
	for line, want := range map[string]string{
		"br": "br", "br;q=0.5, gzip;q=0.4": "br", "br;q=0.4, gzip;q=0.5": "gzip", "br;q=0, gzip": "gzip", "gzip": "gzip", "*": "gzip", "br;q=0.5, identity": "", "zstd": "", "brr": "",
	} {
		a := ask("Accept-Encoding: " + line)
		got := a.Header.Get("Content-Encoding")
		assert.True(t, got == want && len(a.Body) != 0, "%s: got %q, want %q", line, got, want)
	}
	assert.Greater(t, len(ask("Accept-Encoding: gzip").Body), len(packed.Body), "brotli")
	a, b := ask("Accept-Encoding: br", `If-None-Match: "`+name+`-br"`), ask("Accept-Encoding: br", `If-None-Match: "`+name+`-gzip"`)
	assert.True(t, a.Status == 304 && b.Status == 200, "got %d with its tag and %d with that of gzip", a.Status, b.Status)
}

// BenchmarkBrotli is the reason for BrotliLevel.
func BenchmarkBrotli(b *testing.B) {
	script, _, _ := console.Asset(assetName(b))
	for _, level := range []int{5, kernel.BrotliLevel, 11} {
		b.Run(strconv.Itoa(level), func(b *testing.B) {
			var out bytes.Buffer
			for b.Loop() {
				out.Reset()
				w := brotli.NewWriterLevel(&out, level)
				_, _ = w.Write(script)
				_ = w.Close()
			}
			b.ReportMetric(float64(out.Len()), "bytes")
		})
	}
}
