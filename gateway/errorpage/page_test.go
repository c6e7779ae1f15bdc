package errorpage

import (
	"regexp"
	"strings"
	"testing"

	"troupe/gateway/login"
)

// TestPage: the policy allows what is in the page, and nothing of the page needs more.
func TestPage(t *testing.T) {
	for status, want := range map[int][]string{
		403: {"<h1>No access</h1>"}, 404: {"<h1>Page not found</h1>"}, 500: {"<h1>Something went wrong</h1>", `<a href="">Try again</a>`},
		503: {"<h1>Service unavailable</h1>", `<a href="">Try again</a>`},
	} {
		if !Has(status) {
			t.Errorf("%d has no page", status)
		}
		page := string(Page(Options{Base: "/platform", Status: status, ID: `a"<1>`}))
		want = append(want, `<html lang="en">`, "<main>", `href="/platform/"`, `href="/platform/favicon.ico"`, "a&#34;&lt;1&gt;")
		for _, part := range want {
			if !strings.Contains(page, part) {
				t.Errorf("%d: the page has no %s", status, part)
			}
		}
		if again := strings.Contains(page, "Try again"); again != (status >= 500) {
			t.Errorf("%d: Try again: %v", status, again)
		}
		if found := regexp.MustCompile(`https?:|"//|<script|<[^>]*\son[a-z]+=|\sstyle=|\{\{`).FindString(page); found != "" {
			t.Errorf("%d: the page has %q in it", status, found)
		}
		style := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindStringSubmatch(page)
		if style == nil || !strings.Contains(Policy, "style-src '"+styleHash([]byte(style[1]))+"';") {
			t.Errorf("%d: the policy does not name the style: %s", status, Policy)
		}
	}
	for _, status := range []int{200, 400, 401, 405, 429, 504} {
		if Has(status) {
			t.Errorf("%d has a page", status)
		}
	}
	if page := string(Page(Options{Status: 404})); strings.Contains(page, "Error ID:") || !strings.Contains(page, `href="/"`) {
		t.Errorf("without a base path and an id: got %s", page)
	}
}

// TestLanguages: every page is there in both languages, and says which one it is.
func TestLanguages(t *testing.T) {
	for status, english := range contents[login.English] {
		german := contents[login.German][status]
		page := string(Page(Options{Status: status, ID: "1", Language: login.German}))
		for _, want := range []string{`<html lang="de">`, german.title, german.text, "Fehlernummer:", "Zur Startseite"} {
			if want == "" || !strings.Contains(page, want) {
				t.Errorf("%d: the German page has no %q", status, want)
			}
		}
		if german.retry != english.retry || strings.Contains(page, english.text) {
			t.Errorf("%d: the German page is not as the English one", status)
		}
	}
}

func TestPolicy(t *testing.T) {
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(Policy+";", want+";") {
			t.Errorf("the policy lacks %s", want)
		}
	}
	if strings.Contains(Policy, "unsafe") || strings.Contains(Policy, "script-src") {
		t.Errorf("the policy allows too much: %s", Policy)
	}
}
