package errorpage

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPage plays testdata/page.txt: the page for options. The policy allows what is in the page, and nothing of the page needs more.
func TestPage(t *testing.T) {
	datadriven.RunTest(t, "testdata/page.txt", func(t *testing.T, d *datadriven.TestData) string {
		var o Options
		require.NoError(t, json.Unmarshal([]byte(d.Input), &o))
		assert.True(t, Has(o.Status), "%d has no page", o.Status)
		page := string(Page(o))
		assert.Empty(t, regexp.MustCompile(`https?:|"//|<script|<[^>]*\son[a-z]+=|\sstyle=|\{\{`).FindString(page))
		style := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindStringSubmatch(page)
		require.NotNil(t, style)
		assert.Contains(t, Policy, "style-src '"+styleHash([]byte(style[1]))+"';")
		return strings.Replace(page, style[1], "", 1)
	})
	for _, status := range []int{200, 400, 401, 405, 429, 504} {
		assert.False(t, Has(status), "%d has a page", status)
	}
}

func TestPolicy(t *testing.T) {
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		assert.Contains(t, Policy+";", want+";", "the policy lacks %s", want)
	}
	assert.True(t, !strings.Contains(Policy, "unsafe") && !strings.Contains(Policy, "script-src"), "the policy allows too much: %s", Policy)
}
