package console

import (
	"bytes"
	"io/fs"
	"regexp"
	"strings"
	"testing"
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
	if len(next) < 3 {
		t.Fatalf("the shell names %q, want a script, a style and an icon", next)
	}
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		if reached[name] {
			continue
		}
		reached[name] = true
		body, contentType, ok := Asset(name)
		if !ok || len(body) == 0 || contentType == "" {
			t.Errorf("the asset %s is named, but not there", name)
		}
		next = append(next, names(body)...)
	}
	entries, err := fs.ReadDir(built, "dist/assets")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !reached[entry.Name()] {
			t.Errorf("nothing names the asset %s", entry.Name())
		}
		if !regexp.MustCompile(`-[A-Za-z0-9_-]{8}\.[a-z]+$`).MatchString(entry.Name()) {
			t.Errorf("the name of %s does not change with its content, but it may be kept forever", entry.Name())
		}
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
			if strings.Count(shell, "<base ") != 1 || !strings.Contains(shell, c.want) {
				t.Errorf("got %s, want one %s", shell, c.want)
			}
			// An address before <base> would be resolved without it.
			if first := regexp.MustCompile(`(?:href|src)=`).FindStringIndex(shell); first == nil || first[0] != strings.Index(shell, "<base ")+len("<base ") {
				t.Errorf("an address stands in front of the base path in %s", shell)
			}
		})
	}
}

func TestShellIsTheCallersOwn(t *testing.T) {
	first := Shell("", PageWork)
	clear(first)
	if second := Shell("", PageWork); !bytes.HasPrefix(second, []byte("<!doctype html>")) {
		t.Errorf("changing one shell has changed the next: %s", second)
	}
}

func TestNoOtherNameIsAnAsset(t *testing.T) {
	script := names(Shell("", PageWork))[1]
	for _, name := range []string{
		"", ".", "/", "..", "../index.html", "../../console.go", "x/../../index.html", "/" + script, "./" + script, script + "/",
		"../assets/" + script, `..\index.html`, "%2e%2e/index.html", script + "\x00", "index.html", strings.ToUpper(script), script + "x",
	} {
		if body, _, ok := Asset(name); ok {
			t.Errorf("%q is an asset of %d bytes", name, len(body))
		}
	}
	if _, _, ok := Asset(script); !ok {
		t.Errorf("%q is no asset: the test does not see what it refuses", script)
	}
}

// TestThePolicyFits holds what the policy would refuse: scripts and styles in the
// page, handlers in attributes, other servers, and code made of text.
func TestThePolicyFits(t *testing.T) {
	refused := regexp.MustCompile(`<script[^>]*>[^<]|<style|\sstyle=|\son[a-z]+=|https?:|javascript:|src="data:|href="(?:[a-z]+:)?//`)
	if found := refused.Find(Shell("/platform", PageWork)); found != nil {
		t.Errorf("the shell has %q in it", found)
	}
	for _, planted := range []string{
		`<script>x()</script>`, `<script type="module">x`, `<style>p{}</style>`, `<p style="x">`, `<body onload="x()">`, `<script src="https://x.example/x.js">`, `<link href="//x.example/x.css">`,
	} {
		if !refused.MatchString(planted) {
			t.Errorf("the test does not see %q", planted)
		}
	}
	code := regexp.MustCompile(`\beval\(|new Function\(|[^.\w]Function\(["'` + "`" + `]|importScripts\(|\.insertAdjacentHTML|document\.write`)
	err := fs.WalkDir(built, "dist/assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := built.ReadFile(name)
		if found := code.Find(body); found != nil {
			t.Errorf("%s has %q in it", name, found)
		}
		if strings.HasSuffix(name, ".css") && regexp.MustCompile(`@import|url\(`).Match(body) {
			t.Errorf("%s loads something", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'self'", "form-action 'self'"} {
		if !strings.Contains(Policy, want) {
			t.Errorf("the policy lacks %s", want)
		}
	}
	if strings.Contains(Policy, "unsafe") || strings.Contains(Policy, "*") || strings.Contains(Policy, "http") {
		t.Errorf("the policy %q is not strict", Policy)
	}
}

// TestNoPlaceIsBuiltIn holds that the built files do not depend on where they
// were built.
func TestNoPlaceIsBuiltIn(t *testing.T) {
	err := fs.WalkDir(built, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := built.ReadFile(name)
		if found := regexp.MustCompile(`node_modules|file:///|localhost|/home/|sourceMappingURL`).Find(body); found != nil {
			t.Errorf("%s has %q in it", name, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTagChangesWithTheContent(t *testing.T) {
	if here, there := Tag(Shell("/a", PageWork)), Tag(Shell("/b", PageWork)); here == there || here != Tag(Shell("/a", PageWork)) {
		t.Errorf("the tags %s and %s do not tell two shells apart", here, there)
	}
	if tag := Tag(nil); !regexp.MustCompile(`^"[A-Za-z0-9_-]{16}"$`).MatchString(tag) {
		t.Errorf("got the tag %s, want a quoted one", tag)
	}
}

// TestPreloads: each page names the chunks that its script will ask for, and those of no other.
func TestPreloads(t *testing.T) {
	count := map[Page]int{}
	for _, page := range []Page{PageWork, PageForm, PageInstance, "unknown"} {
		shell := string(Shell("", page))
		if strings.Contains(shell, "data-page") {
			t.Errorf("%s: the browser is told what only the server needs: %s", page, shell)
		}
		for _, line := range regexp.MustCompile(`<link [^>]*>`).FindAllString(shell, -1) {
			if !strings.HasSuffix(line, `">`) {
				t.Errorf("%s: got the line %s", page, line)
			}
		}
		count[page] = strings.Count(shell, `rel="modulepreload"`)
		for chunk, of := range map[string]Page{"RuntimePage": PageForm, "InstancePage": PageInstance} {
			if named := strings.Contains(shell, "/"+chunk+"-"); named != (of == page) {
				t.Errorf("%s: names %s: %v", page, chunk, named)
			}
		}
	}
	if count[PageWork] != count["unknown"] || count[PageForm] <= count[PageWork] || count[PageInstance] <= count[PageWork] {
		t.Errorf("got %v", count)
	}
}
