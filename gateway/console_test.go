package gateway_test

import (
	"bytes"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/console"
)

// built is the folder of the pages, which is in the program as it is.
var built = os.DirFS("console")

// referenced finds what a page names: addresses in HTML, and modules and files in
// scripts and styles.
var referenced = regexp.MustCompile(`(?:href|src)="\./assets/([^"]+)"|["'(` + "`" + `]\./([A-Za-z0-9_-]+-[A-Za-z0-9_-]{8}\.(?:js|css|svg))["')` + "`" + `]|"assets/([^"]+)"`)

func referencesOf(text []byte) (found []string) {
	for _, match := range referenced.FindAllSubmatch(text, -1) {
		found = append(found, string(bytes.Join(match[1:], nil)))
	}
	return found
}

// TestEveryNamedFileIsThere follows the shell's references, and those of what
// they lead to. Each asset must be reached, so that nothing old is kept.
func TestEveryNamedFileIsThere(t *testing.T) {
	reached := map[string]bool{}
	var next []string
	for _, page := range []console.Page{console.PageWork, console.PageForm, console.PageInstance} {
		next = append(next, referencesOf(console.Shell("/platform", page))...)
	}
	require.GreaterOrEqual(t, len(next), 3, "the shell names %q, want a script, a style and an icon", next)
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		if reached[name] {
			continue
		}
		reached[name] = true
		body, contentType, ok := console.Asset(name)
		assert.True(t, ok && len(body) != 0 && contentType != "", "the asset %s is named, but not there", name)
		next = append(next, referencesOf(body)...)
	}
	entries, err := fs.ReadDir(built, "dist/assets")
	require.NoError(t, err)
	for _, entry := range entries {
		assert.True(t, reached[entry.Name()], "nothing names the asset %s", entry.Name())
		assert.True(t, regexp.MustCompile(`-[A-Za-z0-9_-]{8}\.[a-z]+$`).MatchString(entry.Name()), entry.Name())
	}
}

func TestShellHasTheBasePath(t *testing.T) {
	cases := []struct{ line, base, want string }{
		{"no base path", "", `<base href="/">`},
		{"a base path", "/platform", `<base href="/platform/">`},
		{"a deep one", "/a/b", `<base href="/a/b/">`},
		{"a hostile one is text", `/"><script>`, `<base href="/&#34;&gt;&lt;script&gt;/">`},
	}
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			shell := string(console.Shell(c.base, console.PageWork))
			assert.True(t, strings.Count(shell, "<base ") == 1 && strings.Contains(shell, c.want), "got %s, want one %s", shell, c.want)
			// An address before <base> would be resolved without it.
			first := regexp.MustCompile(`(?:href|src)=`).FindStringIndex(shell)
			assert.True(t, first != nil && first[0] == strings.Index(shell, "<base ")+len("<base "), "an address stands in front of the base path in %s", shell)
		})
	}
}

func TestShellIsTheCallersOwn(t *testing.T) {
	first := console.Shell("", console.PageWork)
	clear(first)
	second := console.Shell("", console.PageWork)
	assert.True(t, bytes.HasPrefix(second, []byte("<!doctype html>")), "changing one shell has changed the next: %s", second)
}

func TestNoOtherNameIsAnAsset(t *testing.T) {
	script := referencesOf(console.Shell("", console.PageWork))[1]
	for _, name := range []string{
		"", ".", "/", "..", "../index.html", "../../console.go", "x/../../index.html", "/" + script, "./" + script, script + "/",
		"../assets/" + script, `..\index.html`, "%2e%2e/index.html", script + "\x00", "index.html", strings.ToUpper(script), script + "x",
	} {
		body, _, ok := console.Asset(name)
		assert.False(t, ok, "%q is an asset of %d bytes", name, len(body))
	}
	_, _, ok := console.Asset(script)
	assert.True(t, ok, "%q is no asset: the test does not see what it refuses", script)
}

// TestThePolicyFits holds what the policy would refuse: scripts and styles in the
// page, handlers in attributes, other servers, and code made of text.
func TestThePolicyFits(t *testing.T) {
	refused := regexp.MustCompile(`<script[^>]*>[^<]|<style|\sstyle=|\son[a-z]+=|https?:|javascript:|src="data:|href="(?:[a-z]+:)?//`)
	assert.Nil(t, refused.Find(console.Shell("/platform", console.PageWork)), "the shell")
	for _, planted := range []string{
		`<script>x()</script>`, `<script type="module">x`, `<style>p{}</style>`, `<p style="x">`, `<body onload="x()">`, `<script src="https://x.example/x.js">`, `<link href="//x.example/x.css">`,
	} {
		assert.True(t, refused.MatchString(planted), "the test does not see %q", planted)
	}
	code := regexp.MustCompile(`\beval\(|new Function\(|[^.\w]Function\(["'` + "`" + `]|importScripts\(|\.insertAdjacentHTML|document\.write`)
	err := fs.WalkDir(built, "dist/assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(built, name)
		assert.Nil(t, code.Find(body), name)
		assert.False(t, strings.HasSuffix(name, ".css") && regexp.MustCompile(`@import|url\(`).Match(body), "%s loads something", name)
		return err
	})
	require.NoError(t, err)
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'self'", "form-action 'self'"} {
		assert.Contains(t, console.Policy, want, "the policy lacks")
	}
	assert.True(t, !strings.Contains(console.Policy, "unsafe") && !strings.Contains(console.Policy, "*") && !strings.Contains(console.Policy, "http"), "the policy %q is not strict", console.Policy)
}

// TestNoPlaceIsBuiltIn holds that the built files do not depend on where they
// were built.
func TestNoPlaceIsBuiltIn(t *testing.T) {
	err := fs.WalkDir(built, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(built, name)
		assert.Nil(t, regexp.MustCompile(`node_modules|file:///|localhost|/home/|sourceMappingURL`).Find(body), name)
		return err
	})
	require.NoError(t, err)
}

func TestTagChangesWithTheContent(t *testing.T) {
	here, there := console.Tag(console.Shell("/a", console.PageWork)), console.Tag(console.Shell("/b", console.PageWork))
	assert.True(t, here != there && here == console.Tag(console.Shell("/a", console.PageWork)), "the tags %s and %s do not tell two shells apart", here, there)
	tag := console.Tag(nil)
	assert.True(t, regexp.MustCompile(`^"[A-Za-z0-9_-]{16}"$`).MatchString(tag), "got the tag %s, want a quoted one", tag)
}

// TestPreloads: each page names the chunks that its script will ask for, and those of no other.
func TestPreloads(t *testing.T) {
	count := map[console.Page]int{}
	for _, page := range []console.Page{console.PageWork, console.PageForm, console.PageInstance, "unknown"} {
		shell := string(console.Shell("", page))
		assert.NotContains(t, shell, "data-page", "%s: the browser is told what only the server needs", page)
		for _, line := range regexp.MustCompile(`<link [^>]*>`).FindAllString(shell, -1) {
			assert.True(t, strings.HasSuffix(line, `">`), "%s: got the line %s", page, line)
		}
		count[page] = strings.Count(shell, `rel="modulepreload"`)
		for chunk, of := range map[string]console.Page{"RuntimePage": console.PageForm, "InstancePage": console.PageInstance} {
			assert.Equal(t, of == page, strings.Contains(shell, "/"+chunk+"-"), "%s: names %s", page, chunk)
		}
	}
	assert.True(t, count[console.PageWork] == count["unknown"] && count[console.PageForm] > count[console.PageWork] && count[console.PageInstance] > count[console.PageWork], "got %v", count)
}

// TestPackages: every package of the licences is read, with all three parts.
func TestPackages(t *testing.T) {
	all := console.Packages()
	licenses, err := fs.ReadFile(built, "dist/licenses.md")
	require.NoError(t, err)
	want := bytes.Count(licenses, []byte("\n## "))
	assert.True(t, len(all) == want && want != 0, "got %d packages of %d", len(all), want)
	first := (console.Package{Name: "@cfworker/json-schema", Version: "4.1.6", License: "MIT"})
	assert.Equal(t, first, all[0])
}
