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

// languages are those that the reader wants, the best first (RFC 9110, section 12.5.4). What cannot be read is none. The answer depends on them.
func (x *exchange) languages() []string {
	x.varyLanguage = true
	header := strings.Join(x.r.Header["Accept-Language"], ",")
	if header == "" || len(header) > languageBytesMax {
		return nil
	}
	tags, _, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return nil
	}
	var out []string
	for _, t := range tags[:min(len(tags), languagesMax)] {
		if t != language.Und {
			out = append(out, t.String())
		}
	}
	return out
}
