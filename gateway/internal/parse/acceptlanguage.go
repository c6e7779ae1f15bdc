package parse

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/text/language"
)

// LanguagesMax bounds the languages of a reader that are looked at, and LanguageBytesMax the header.
const (
	LanguagesMax     = 16
	LanguageBytesMax = 1 << 10
)

// AcceptLanguage returns the languages of an Accept-Language header in the order of their weights (RFC 9110, section 12.5.4). What
// cannot be read is passed over, element by element: a text in the wrong language is better than a refusal.
func AcceptLanguage(lines []string) (out []string) {
	header := strings.Join(lines, ",")
	if len(header) > LanguageBytesMax {
		return nil
	}
	type weighted struct {
		tag    string
		weight float32
	}
	var read []weighted
	for element := range strings.SplitSeq(header, ",") {
		tags, weights, err := language.ParseAcceptLanguage(element)
		if err != nil || len(tags) != 1 || weights[0] <= 0 {
			continue
		}
		if tag := tags[0].String(); tag != "mul" && tags[0] != language.Und { // NB: "*" is read as mul
			read = append(read, weighted{tag, weights[0]})
		}
	}
	slices.SortStableFunc(read, func(a, b weighted) int { return cmp.Compare(b.weight, a.weight) })
	for _, w := range read[:min(len(read), LanguagesMax)] {
		out = append(out, w.tag)
	}
	return out
}
