package console

import (
	"bytes"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// named finds what a page names: addresses in HTML, and modules and files in
// scripts and styles.
var named = regexp.MustCompile(`(?:href|src)="\./assets/([^"]+)"|["'(` + "`" + `]\./([A-Za-z0-9_-]+-[A-Za-z0-9_-]{8}\.(?:js|css|svg))["')` + "`" + `]|"assets/([^"]+)"`)

func names(text []byte) (found []string) {
	for _, match := range named.FindAllSubmatch(text, -1) {
		found = append(found, string(bytes.Join(match[1:], nil)))
	}
	return found
}

// TestEveryNamedFileIsThere follows the shell's references, and those of what
// they lead to. Each asset must be reached, so that nothing old is kept.
func TestEveryNamedFileIsThere(t *testing.T) {
	reached := map[string]bool{}
	var next []string
	for _, page := range []Page{PageWork, PageForm, PageInstance} {
		next = append(next, names(Shell("/platform", page))...)
	}
	require.GreaterOrEqual(t, len(next), 3, "the shell names %q, want a script, a style and an icon", next)
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		if reached[name] {
			continue
		}
		reached[name] = true
		body, contentType, ok := Asset(name)
		assert.True(t, ok && len(body) != 0 && contentType != "", "the asset %s is named, but not there", name)
		next = append(next, names(body)...)
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
			shell := string(Shell(c.base, PageWork))
			assert.True(t, strings.Count(shell, "<base ") == 1 && strings.Contains(shell, c.want), "got %s, want one %s", shell, c.want)
			// An address before <base> would be resolved without it.
			first := regexp.MustCompile(`(?:href|src)=`).FindStringIndex(shell)
			assert.True(t, first != nil && first[0] == strings.Index(shell, "<base ")+len("<base "), "an address stands in front of the base path in %s", shell)
		})
	}
}

func TestShellIsTheCallersOwn(t *testing.T) {
	first := Shell("", PageWork)
	clear(first)
	second := Shell("", PageWork)
	assert.True(t, bytes.HasPrefix(second, []byte("<!doctype html>")), "changing one shell has changed the next: %s", second)
}

func TestNoOtherNameIsAnAsset(t *testing.T) {
	script := names(Shell("", PageWork))[1]
	for _, name := range []string{
		"", ".", "/", "..", "../index.html", "../../console.go", "x/../../index.html", "/" + script, "./" + script, script + "/",
		"../assets/" + script, `..\index.html`, "%2e%2e/index.html", script + "\x00", "index.html", strings.ToUpper(script), script + "x",
	} {
		body, _, ok := Asset(name)
		assert.False(t, ok, "%q is an asset of %d bytes", name, len(body))
	}
	_, _, ok := Asset(script)
	assert.True(t, ok, "%q is no asset: the test does not see what it refuses", script)
}

// TestThePolicyFits holds what the policy would refuse: scripts and styles in the
// page, handlers in attributes, other servers, and code made of text.
func TestThePolicyFits(t *testing.T) {
	refused := regexp.MustCompile(`<script[^>]*>[^<]|<style|\sstyle=|\son[a-z]+=|https?:|javascript:|src="data:|href="(?:[a-z]+:)?//`)
	assert.Nil(t, refused.Find(Shell("/platform", PageWork)), "the shell")
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
		body, err := built.ReadFile(name)
		assert.Nil(t, code.Find(body), name)
		assert.False(t, strings.HasSuffix(name, ".css") && regexp.MustCompile(`@import|url\(`).Match(body), "%s loads something", name)
		return err
	})
	require.NoError(t, err)
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'self'", "form-action 'self'"} {
		assert.Contains(t, Policy, want, "the policy lacks")
	}
	assert.True(t, !strings.Contains(Policy, "unsafe") && !strings.Contains(Policy, "*") && !strings.Contains(Policy, "http"), "the policy %q is not strict", Policy)
}

// TestNoPlaceIsBuiltIn holds that the built files do not depend on where they
// were built.
func TestNoPlaceIsBuiltIn(t *testing.T) {
	err := fs.WalkDir(built, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := built.ReadFile(name)
		assert.Nil(t, regexp.MustCompile(`node_modules|file:///|localhost|/home/|sourceMappingURL`).Find(body), name)
		return err
	})
	require.NoError(t, err)
}

func TestTagChangesWithTheContent(t *testing.T) {
	here, there := Tag(Shell("/a", PageWork)), Tag(Shell("/b", PageWork))
	assert.True(t, here != there && here == Tag(Shell("/a", PageWork)), "the tags %s and %s do not tell two shells apart", here, there)
	tag := Tag(nil)
	assert.True(t, regexp.MustCompile(`^"[A-Za-z0-9_-]{16}"$`).MatchString(tag), "got the tag %s, want a quoted one", tag)
}

// TestPreloads: each page names the chunks that its script will ask for, and those of no other.
func TestPreloads(t *testing.T) {
	count := map[Page]int{}
	for _, page := range []Page{PageWork, PageForm, PageInstance, "unknown"} {
		shell := string(Shell("", page))
		assert.NotContains(t, shell, "data-page", "%s: the browser is told what only the server needs", page)
		for _, line := range regexp.MustCompile(`<link [^>]*>`).FindAllString(shell, -1) {
			assert.True(t, strings.HasSuffix(line, `">`), "%s: got the line %s", page, line)
		}
		count[page] = strings.Count(shell, `rel="modulepreload"`)
		for chunk, of := range map[string]Page{"RuntimePage": PageForm, "InstancePage": PageInstance} {
			assert.Equal(t, of == page, strings.Contains(shell, "/"+chunk+"-"), "%s: names %s", page, chunk)
		}
	}
	assert.True(t, count[PageWork] == count["unknown"] && count[PageForm] > count[PageWork] && count[PageInstance] > count[PageWork], "got %v", count)
}

// TestPackages: every package of the licences is read, with all three parts.
func TestPackages(t *testing.T) {
	all := Packages()
	want := bytes.Count(licenses(), []byte("\n## "))
	assert.True(t, len(all) == want && want != 0, "got %d packages of %d", len(all), want)
	first := (Package{Name: "@cfworker/json-schema", Version: "4.1.6", License: "MIT"})
	assert.Equal(t, first, all[0])
}
