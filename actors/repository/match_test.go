package repository

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
)

// TestMatch holds gateway/INTERFACE.md, "Extensions".
func TestMatch(t *testing.T) {
	cases := []struct {
		rule, extension, name string
		want                  bool
	}{
		{"D.1 without a dot", "rml", "a.rml", true},
		{"D.1 a leading dot is stripped", ".rml", "a.rml", true},
		{"D.1 only one dot is stripped", "..rml", "a.rml", false},
		{"D.1 only one dot is stripped, the second counts", "..rml", "a..rml", true},
		{"D.2 the name ends with a dot and the extension", "xlsx", "a.csv.xlsx", true},
		{"D.2 an extension may have dots", "csv.xlsx", "a.csv.xlsx", true},
		{"D.2 an extension in the middle is none", "csv", "a.csv.xlsx", false},
		{"D.2 a dotfile", "x", ".x", true},
		{"D.2 the extension without its dot", "x", "x", false},
		{"D.2 the extension as the end of a word", "ml", "a.rml", false},
		{"D.2 the whole name is the extension", "a.rml", "a.rml", false},
		{"D.2 longer than the name", "long.rml", "rml", false},
		{"D.3 a file without an extension", "a", "a", false},
		{"D.3 a dot at the end is no extension", "a", "a.", false},
		{"case as written: upper", "RML", "a.rml", false},
		{"case as written: lower", "rml", "a.RML", false},
		{"case as written: the same", "RML", "a.RML", true},
		{"blanks count behind", "rml", "a.rml ", false},
		{"blanks count behind, in both", "rml ", "a.rml ", true},
		{"blanks count in front", "rml", "a .rml", true},
		{"nothing is a pattern: star", "*", "a.rml", false},
		{"nothing is a pattern: question mark", "?ml", "a.rml", false},
		{"nothing is a pattern: dot", "r.l", "a.rml", false},
		{"nothing is a pattern: percent", "%", "a.rml", false},
		{"a slash is in no name", "b/a.rml", "a.rml", false},
		{"composed and decomposed letters differ", "\u00fc", "a.u\u0308", false},
		{"composed letters are the same", "\u00fc", "a.\u00fc", true},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			extension, err := ParseExtension(c.extension)
			require.NoError(t, err, "ParseExtension(%q)", c.extension)
			assert.Equal(t, c.want, extension.Matches(c.name), "%q matches %q", c.extension, c.name)
		})
	}
}

// TestParseExtension holds which texts are refused as extensions.
func TestParseExtension(t *testing.T) {
	for _, c := range []struct{ rule, text, says string }{
		{"missing", "", "missing or blank"},
		{"a dot alone", ".", "missing or blank"},
		{"a blank", " ", "missing or blank"},
		{"a blank behind the dot", ". ", "missing or blank"},
		{"a tab", "\t", "missing or blank"},
		{"a blank that is not ASCII", "\u00a0", "missing or blank"},
		{"NUL", "a\x00", "control character"},
		{"a line end", "rml\n", "control character"},
		{"a tab inside", "a\tb", "control character"},
		{"DEL", "\x7f", "control character"},
		{"a control character that is not ASCII", "\u0085x", "control character"},
		{"no UTF-8", "a\xff", "not UTF-8"},
		{"10 kB", strings.Repeat("a", 10_000), "longer than"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			_, err := ParseExtension(c.text)
			assert.True(t, errors.Is(err, failure.ErrInvalid) && strings.Contains(err.Error(), c.says), "%v %v %v", c.text, err, c.says)
		})
	}
	_, err := ParseExtension("." + strings.Repeat("a", extensionBytesMax))
	assert.NoError(t, err, "the longest extension")
}

func TestPaths(t *testing.T) {
	check := func(what string, is func(string) bool, texts []string, want bool) {
		t.Helper()
		for _, text := range texts {
			assert.Equal(t, want, is(text), "%q as a %s: got %v", text, what, !want)
		}
	}
	check("path", IsPath, []string{"/", "/a", "/a/b.rml", "/a b/\u00fc.rml", `/a\b`, "/.a/..b/...", "/a.rml "}, true)
	check("path", IsPath, []string{
		"", "a", "./a", "//", "//a", "/a//b", "/a/", "/a/.", "/a/./b", "/a/../b", "/..", "file:/a", `C:\a`,
		"/a\x00", "/a\nb", "/a\u0085", "/a\xff", "/a\xc0\xaf",
	}, false)
	check("name", IsName, []string{"a", ".a", "...", " ", `\`}, true)
	check("name", IsName, []string{"", ".", "..", "a/b", "a\n", "\xff"}, false)
}
