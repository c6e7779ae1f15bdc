package parse

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

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
