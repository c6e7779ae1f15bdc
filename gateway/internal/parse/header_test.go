package parse

import (
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
