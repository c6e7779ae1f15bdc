package errorpage

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/gateway/login"
)

// TestPage: the policy allows what is in the page, and nothing of the page needs more.
func TestPage(t *testing.T) {
	for status, want := range map[int][]string{
		403: {"<h1>No access</h1>"}, 404: {"<h1>Page not found</h1>"}, 500: {"<h1>Something went wrong</h1>", `<a href="">Try again</a>`},
		503: {"<h1>Service unavailable</h1>", `<a href="">Try again</a>`},
	} {
		assert.True(t, Has(status), "%d has no page", status)
		page := string(Page(Options{Base: "/platform", Status: status, ID: `a"<1>`}))
		want = append(want, `<html lang="en">`, "<main>", `href="/platform/"`, `href="/platform/favicon.ico"`, "a&#34;&lt;1&gt;")
		for _, part := range want {
			assert.Contains(t, page, part, "%d: the page has no", status)
		}
		assert.Equal(t, status >= 500, strings.Contains(page, "Try again"), "%d: Try again", status)
		assert.Empty(t, regexp.MustCompile(`https?:|"//|<script|<[^>]*\son[a-z]+=|\sstyle=|\{\{`).FindString(page), "%d: the page", status)
		style := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindStringSubmatch(page)
		assert.True(t, style != nil && strings.Contains(Policy, "style-src '"+styleHash([]byte(style[1]))+"';"), "%v %v", status, Policy)
	}
	for _, status := range []int{200, 400, 401, 405, 429, 504} {
		assert.False(t, Has(status), "%d has a page", status)
	}
	page := string(Page(Options{Status: 404}))
	assert.True(t, !strings.Contains(page, "Error ID:") && strings.Contains(page, `href="/"`), "without a base path and an id: got %s", page)
}

// TestLanguages: every page is there in both languages, and says which one it is.
func TestLanguages(t *testing.T) {
	for status, english := range contents[login.English] {
		german := contents[login.German][status]
		page := string(Page(Options{Status: status, ID: "1", Language: login.German}))
		for _, want := range []string{`<html lang="de">`, german.title, german.text, "Fehlernummer:", "Zur Startseite"} {
			assert.True(t, want != "" && strings.Contains(page, want), "%d: the German page has no %q", status, want)
		}
		assert.True(t, german.retry == english.retry && !strings.Contains(page, english.text), "%d: the German page is not as the English one", status)
	}
}

func TestPolicy(t *testing.T) {
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		assert.Contains(t, Policy+";", want+";", "the policy lacks %s", want)
	}
	assert.True(t, !strings.Contains(Policy, "unsafe") && !strings.Contains(Policy, "script-src"), "the policy allows too much: %s", Policy)
}
