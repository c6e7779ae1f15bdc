package parse

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestPrefer holds gateway/INTERFACE.md, "Prefer", and RFC 7240.
func TestPrefer(t *testing.T) {
	cases := []struct {
		line  string
		lines []string
		want  bool
	}{
		{"absent", nil, false},
		{"as it should be", []string{"return=minimal"}, true},
		{"blanks", []string{" return = minimal "}, true},
		{"quoted", []string{`return="minimal"`}, true},
		{"names ignore the case", []string{"Return=minimal"}, true},
		{"values do not", []string{"return=Minimal"}, false},
		{"parameters are ignored", []string{"return=minimal; foo=bar"}, true},
		{"among others", []string{"respond-async, wait=10, return=minimal"}, true},
		{"in the second line", []string{"wait=10", "return=minimal"}, true},
		{"the first return counts", []string{"return=representation, return=minimal"}, false},
		{"the other wish", []string{"return=representation"}, false},
		{"without a value", []string{"return"}, false},
		{"inside a quoted string", []string{`foo="a, return=minimal"`}, false},
		{"behind a quoted string with escapes", []string{`foo="a\",", return=minimal`}, true},
		{"inside an open quote", []string{`foo="a, return=minimal`}, false},
		{"another name", []string{"xreturn=minimal"}, false},
		{"empty", []string{"", ","}, false},
	}
	for _, c := range cases {
		assert.Equal(t, c.want, PrefersMinimal(c.lines), "%s: prefersMinimal(%q)", c.line, c.lines)
	}
}

// TestAcceptLanguage holds gateway/INTERFACE.md, "Languages".
func TestAcceptLanguage(t *testing.T) {
	for header, want := range map[string]string{
		"":                                 "",
		"de":                               "de",
		"de-AT, de;q=0.9,en;q=0.8":         "de-AT de en",
		"en;q=0.5, de":                     "de en",
		"*;q=0.5, de;q=0, en;q=0.1":        "en",
		"<b>, \x00":                        "",
		"xq-XX, de;q=0.9, <b>, en;q=0.8":   "de en",
		"de;q=x, zz-zzzzzzzzz, en":         "en",
		strings.Repeat("de,", 10) + "en":   strings.Repeat("de ", 10) + "en",
		strings.Repeat("de,", 1000) + "en": "",
	} {
		assert.Equal(t, want, strings.Join(AcceptLanguage([]string{header}), " "), header)
	}
	assert.Equal(t, []string{"de", "en"}, AcceptLanguage([]string{"en;q=0.1", "de"}), "two lines")
}

func FuzzAcceptLanguage(f *testing.F) {
	for _, header := range []string{"de-AT, de;q=0.9,en;q=0.8,*;q=0.1", "en;q=", ";q=1", strings.Repeat("de,", 100)} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		assert.LessOrEqual(t, len(AcceptLanguage([]string{header})), LanguagesMax, "languages")
	})
}
