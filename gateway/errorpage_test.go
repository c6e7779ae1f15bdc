package gateway_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/errorpage"
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
