package gateway_test

import (
	"crypto/sha256"
	"encoding/base64"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/reference"
)

// theInterface is the description that the program serves.
func theInterface(t *testing.T) *reference.Document {
	t.Helper()
	source, err := os.ReadFile("openapi.yaml")
	require.NoError(t, err)
	d, err := reference.Parse(source)
	require.NoError(t, err)
	return d
}

// TestLinksLeadSomewhere follows every link of the page: inside it, or to the
// description itself.
func TestLinksLeadSomewhere(t *testing.T) {
	page, err := theInterface(t).Page()
	require.NoError(t, err)
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(`\sid="([^"]+)"`).FindAllSubmatch(page, -1) {
		assert.False(t, ids[string(m[1])], "the id %s stands there twice", m[1])
		ids[string(m[1])] = true
	}
	links := regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllSubmatch(page, -1)
	for _, m := range links {
		address := string(m[1])
		inside, found := strings.CutPrefix(address, "#")
		assert.True(t, (!found || ids[inside]) && !(!found && address != "openapi.yaml" && address != "openapi.json" && address != "favicon.ico"), address)
	}
	assert.True(t, len(links) >= 300 && len(ids) >= 150, "the page has only %d links and %d places", len(links), len(ids))
	assert.Nil(t, regexp.MustCompile(`<script|\son[a-z]+=|\sstyle=|javascript:|<form|<no value>|ZgotmplZ`).Find(page), "the page")
}

// TestPolicyFits holds that the page's only style is the one that the policy names.
func TestPolicyFits(t *testing.T) {
	page, err := theInterface(t).Page()
	require.NoError(t, err)
	styles := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindAllSubmatch(page, -1)
	require.Len(t, styles, 1)
	sum := sha256.Sum256(styles[0][1])
	hash := "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
	assert.True(t, len(styles) == 1 && strings.Contains(reference.Policy, hash), "%d styles, and the policy %s", len(styles), reference.Policy)
	assert.True(t, !strings.Contains(reference.Policy, "unsafe") && !strings.Contains(reference.Policy, "*") && !strings.Contains(reference.Policy, "http") && !strings.Contains(reference.Policy, "script"), "the policy %q is not strict", reference.Policy)
}

const small = `{"openapi":"3.1.0","info":{"title":"<b>","version":"1","description":"TEXT"},"tags":[{"name":"a b"}],
"paths":{"/x/{y}":{"parameters":[{"name":"y","in":"path","required":true,"schema":{"type":"string"}}],
"get":{"operationId":"getX","tags":["a b"],"summary":"S <i>","responses":{"200":{"$ref":"#/components/responses/R"}}}}},
"components":{"responses":{"R":{"description":"d","content":{"application/json":{"schema":{"$ref":"#/components/schemas/S"},"examples":{"e":{"value":{"a":"</pre>"}}}}}}},
"schemas":{"S":{"type":"object","required":["a"],"properties":{"a":{"enum":["x","y"]},"b":{"type":["integer","null"],"minimum":1},"c":{"type":"array","items":{"type":"object","properties":{"d":{"const":"z"}}}}}}}}}`

func TestPageOfTheInterface(t *testing.T) {
	cases := []struct{ line, text, want string }{
		{"text is escaped", "a <script> & b", "<p>a &lt;script&gt; &amp; b</p>"},
		{"code and strong", "**a** `b**c**` **d**", "<p><strong>a</strong> <code>b**c**</code> <strong>d</strong></p>"},
		{"code is escaped", "`<i>`", "<p><code>&lt;i&gt;</code></p>"},
		{"a list", `a\n\n- b\n  c\n- d`, "<p>a</p>\n<ul><li>b\n  c</li><li>d</li></ul>"},
		{"the title", "", "<h1>&lt;b&gt;: the interface</h1>"},
		{"the summary", "", "S &lt;i&gt;"},
		{"no credential is named", "", "<b>Credential</b> none"},
		{"a parameter of the path", "", `<dt><code>y</code> <span class="note">path</span> <span class="required">required</span>`},
		{"a link to a schema", "", `<a href="#schema-S">S</a>`},
		{"a required member with words", "", `<dt><code>a</code> <span class="required">required</span> <span class="type"><code>x</code> or <code>y</code></span>`},
		{"several types and a bound", "", `<span class="type">integer or null</span> <span class="note">from 1</span>`},
		{"members of what is in a list", "", `<dt><code>d</code> <span class="type"><code>z</code></span>`},
		{"an example is escaped", "", "&#34;a&#34;: &#34;&lt;/pre&gt;&#34;"},
	}
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			d, err := reference.Parse([]byte(strings.Replace(small, "TEXT", c.text, 1)))
			require.NoError(t, err)
			page, err := d.Page()
			assert.False(t, err != nil || !strings.Contains(string(page), c.want), "got %v and a page without %s:\n%s", err, c.want, page)
		})
	}
}

func TestBrokenDescriptions(t *testing.T) {
	_, err := reference.Parse([]byte("a: ["))
	assert.Error(t, err, "what is no YAML was taken")
	for _, leads := range []string{"#/components/schemas/None", "#/components/schemas", "other.yaml#/S", ""} {
		d, err := reference.Parse([]byte(strings.Replace(small, "#/components/schemas/S", leads, 1)))
		require.NoError(t, err)
		_, err = d.Page()
		assert.True(t, err != nil && strings.Contains(err.Error(), "leads nowhere"), "%q: got %v, want that it leads nowhere", leads, err)
	}
}

func TestJSONKeepsTheOrder(t *testing.T) {
	d, err := reference.Parse([]byte("b: 1\na: {d: x, c: [true, null]}\n"))
	require.NoError(t, err)
	got, err := d.JSON()
	assert.True(t, err == nil && string(got) == `{"b":1,"a":{"d":"x","c":[true,null]}}`, "got %s, %v", got, err)
}
