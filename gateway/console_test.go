package gateway

import (
	"bytes"
	"io"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/stretchr/testify/assert"

	"troupe/gateway/console"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/login"
	"troupe/gateway/reference"
	"troupe/statemachine"
)

// assetName returns the name of the script that the pages begin with.
func assetName(t testing.TB) string {
	t.Helper()
	found := regexp.MustCompile(`src="\./assets/([^"]+\.js)"`).FindSubmatch(console.Shell("", console.PageWork))
	if found == nil {
		t.Fatalf("the shell names no script: %s", console.Shell("", console.PageWork))
	}
	return string(found[1])
}

// isWorthPacking reports whether a page is long enough to be packed.
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
