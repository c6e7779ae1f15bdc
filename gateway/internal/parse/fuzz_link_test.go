package parse

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzNextLink holds that the Link leads back to the same parameters, and that
// nothing in it ends the reference or the header.
func FuzzNextLink(f *testing.F) {
	f.Add("{}", "1", "c1")
	f.Add("<>\",;\r\n", "+ %", "a&b=c#d")
	f.Add("\xff\x00", "ü", "\u2028")
	link := regexp.MustCompile(`^<(/base/instances/leave\?[!-~]*)>; rel="next"$`)
	f.Fuzz(func(t *testing.T, filter, sort, cursor string) {
		query := url.Values{"filter": {filter}, "sort": {sort}, "cursor": {"old"}}
		got := NextLink("/base/instances/leave", []string{"filter", "limit", "cursor", "sort"}, query, cursor)
		parts := link.FindStringSubmatch(got)
		require.True(t, parts != nil && !strings.ContainsAny(parts[1], `<>",;`), "got %q", got)
		reference, err := url.Parse(parts[1])
		require.NoError(t, err, got)
		back, err := url.ParseQuery(reference.RawQuery)
		want := url.Values{"filter": {filter}, "sort": {sort}, "cursor": {cursor}}
		assert.True(t, err == nil && back.Encode() == want.Encode() && reference.Fragment == "", "%q leads to %v (%v), want %v", got, back, err, want)
	})
}

func FuzzLastEventID(f *testing.F) {
	for _, seed := range []string{"", "e.7", "a b", "ü", strings.Repeat("x", lastEventIDCharsMax), strings.Repeat("x", lastEventIDCharsMax+1), "\x7f"} {
		f.Add(seed)
	}
	shape := regexp.MustCompile(`^[!-~]*$`)
	f.Fuzz(func(t *testing.T, line string) {
		got, err := LastEventID([]string{line})
		ok := shape.MatchString(line) && len(line) <= lastEventIDCharsMax
		assert.True(t, (err == nil) == ok && (!ok || got == line), "%q: got %q, %v", line, got, err)
	})
}

// TestQuote holds the 64 characters themselves.
func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"":                               `""`,
		"plain":                          `"plain"`,
		"a\"b\n":                         `"a\"b\n"`,
		"ü\xff":                          `"\u00fc\xff"`,
		strings.Repeat("x", 64):          `"` + strings.Repeat("x", 64) + `"`,
		strings.Repeat("x", 65):          `"` + strings.Repeat("x", 64) + `"…`,
		strings.Repeat("x", 60) + "\x00": `"` + strings.Repeat("x", 60) + `\x00"`,
		strings.Repeat("x", 61) + "\x00": `"` + strings.Repeat("x", 61) + `"…`,
	} {
		assert.Equal(t, want, Quote(in), "quote(%q)", in)
	}
}
