package gateway_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/errorpage"
	"troupe/gateway/hypertext"
)

// TestErrorPage plays testdata/errorpage.txt: the page for options. The policy allows what is in the page, and nothing of the page needs more.
func TestErrorPage(t *testing.T) {
	datadriven.RunTest(t, "testdata/errorpage.txt", func(t *testing.T, d *datadriven.TestData) string {
		var o errorpage.Options
		require.NoError(t, json.Unmarshal([]byte(d.Input), &o))
		assert.True(t, errorpage.Has(o.Status), "%d has no page", o.Status)
		page := string(errorpage.Page(o))
		assert.Empty(t, regexp.MustCompile(`https?:|"//|<script|<[^>]*\son[a-z]+=|\sstyle=|\{\{`).FindString(page))
		style := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindStringSubmatch(page)
		require.NotNil(t, style)
		sum := sha256.Sum256([]byte(style[1]))
		assert.Contains(t, errorpage.Policy, "style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"';")
		return strings.Replace(page, style[1], "", 1)
	})
	for _, status := range []int{200, 400, 401, 405, 429, 504} {
		assert.False(t, errorpage.Has(status), "%d has a page", status)
	}
}

func TestErrorPagePolicy(t *testing.T) {
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		assert.Contains(t, errorpage.Policy+";", want+";", "the policy lacks %s", want)
	}
	assert.True(t, !strings.Contains(errorpage.Policy, "unsafe") && !strings.Contains(errorpage.Policy, "script-src"), "the policy allows too much: %s", errorpage.Policy)
}

func TestPut(t *testing.T) {
	var w hypertext.Writer
	w.Put(`<a title="%s">%s</a>`, `" onclick="x`, "<b>&")
	w.Put("%s%d%.1f", hypertext.Raw("<br>"), 3, 0.25)
	w.Put("%v %v", errors.New("<e>"), time.Duration(0))
	assert.Equal(t, `<a title="&#34; onclick=&#34;x">&lt;b&gt;&amp;</a><br>30.2&lt;e&gt; 0s`, string(w.Raw()))
}

// named is a text of another type, as names of methods and statuses are.
type named string

func TestPutEscapesNamedTexts(t *testing.T) {
	var w hypertext.Writer
	w.Put("%s", named("<b>"))
	assert.Equal(t, "&lt;b&gt;", string(w.Raw()))
}

// FuzzPut: no value makes a tag, whatever its type.
func FuzzPut(f *testing.F) {
	f.Add("<script>alert(1)</script>")
	f.Add(`'"<`)
	f.Fuzz(func(t *testing.T, text string) {
		var w hypertext.Writer
		w.Put("%s", text)
		w.Put("%v", errors.New(text))
		got := string(w.Raw())
		assert.False(t, strings.ContainsAny(got, `<>"'`), "%q is written as %q", text, got)
	})
}
