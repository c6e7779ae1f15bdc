package gateway

import (
	"slices"
	"strings"
	"testing"
)

// TestIfMatch holds gateway/INTERFACE.md, "Concurrent editing", and RFC 9110,
// 13.1.1.
func TestIfMatch(t *testing.T) {
	cases := []struct {
		line  string
		lines []string
		want  []uint64
		bad   bool
	}{
		{"absent means any", nil, nil, false},
		{"a star means any", []string{"*"}, nil, false},
		{"one tag", []string{`"7"`}, []uint64{7}, false},
		{"a list", []string{`"7", "8" ,"9"`}, []uint64{7, 8, 9}, false},
		{"several lines are one list", []string{`"7"`, `"8"`}, []uint64{7, 8}, false},
		{"empty elements are ignored", []string{`,"7",, "8",`}, []uint64{7, 8}, false},
		{"a weak tag never matches", []string{`W/"7"`}, []uint64{0}, false},
		{"a weak tag beside a strong one", []string{`W/"7", "8"`}, []uint64{8}, false},
		{"a tag that is no number never matches", []string{`"abc"`}, []uint64{0}, false},
		{"a number that we would not write never matches", []string{`"07", "+7", "0x7", "7 "`}, nil, true},
		{"leading zeros", []string{`"07"`}, []uint64{0}, false},
		{"a sign", []string{`"+7"`}, []uint64{0}, false},
		{"zero", []string{`"0"`}, []uint64{0}, false},
		{"an empty tag", []string{`""`}, []uint64{0}, false},
		{"the largest", []string{`"18446744073709551615"`}, []uint64{18446744073709551615}, false},
		{"beyond the largest", []string{`"18446744073709551616"`}, []uint64{0}, false},
		{"no quotes", []string{`7`}, nil, true},
		{"an open quote", []string{`"7`}, nil, true},
		{"empty", []string{``}, nil, true},
		{"only commas", []string{`, ,`}, nil, true},
		{"a star among tags", []string{`"7", *`}, nil, true},
		{"two stars", []string{`*`, `*`}, nil, true},
		{"no comma", []string{`"7" "8"`}, nil, true},
		{"a small w", []string{`w/"7"`}, nil, true},
		{"a blank in a tag", []string{`"a b"`}, nil, true},
		{"too many", []string{strings.Repeat(`"7",`, 257)}, nil, true},
	}
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			got, err := parseIfMatch(c.lines)
			if (err != nil) != c.bad || !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) {
				t.Errorf("parseIfMatch(%.40q): got %v, %v; want %v, bad %v", c.lines, got, err, c.want, c.bad)
			}
		})
	}
}

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
		{"parameters are passed over", []string{"return=minimal; foo=bar"}, true},
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
		if got := prefersMinimal(c.lines); got != c.want {
			t.Errorf("%s: prefersMinimal(%q): got %v, want %v", c.line, c.lines, got, c.want)
		}
	}
}
