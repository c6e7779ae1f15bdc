package gateway

import (
	"strings"

	"golang.org/x/text/language"
)

// languagesMax bounds the languages of a reader that are looked at, and languageBytesMax the header.
const (
	languagesMax     = 16
	languageBytesMax = 1 << 10
)

// languages returns the languages of the reader, the preferred one first, and notes that the answer depends on them.
func (x *exchange) languages() []string {
	x.varyLanguage = true
	return parseAcceptLanguage(x.r.Header["Accept-Language"])
}

// parseAcceptLanguage returns the languages of an Accept-Language header in the order of their weights (RFC 9110, section 12.5.4). A header
// that cannot be read asks for none: a text in the wrong language is better than a refusal.
func parseAcceptLanguage(lines []string) (out []string) {
	header := strings.Join(lines, ",")
	if len(header) > languageBytesMax {
		return nil
	}
	tags, weights, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return nil
	}
	for i, t := range tags[:min(len(tags), languagesMax)] {
		if tag := t.String(); tag != "mul" && t != language.Und && weights[i] > 0 { // NB: "*" is read as mul
			out = append(out, tag)
		}
	}
	return out
}
