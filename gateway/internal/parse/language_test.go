package parse

import (
	"slices"
	"strings"
	"testing"
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
		if got := strings.Join(AcceptLanguage([]string{header}), " "); got != want {
			t.Errorf("%.60q: got %q, want %q", header, got, want)
		}
	}
	if got := AcceptLanguage([]string{"en;q=0.1", "de"}); !slices.Equal(got, []string{"de", "en"}) {
		t.Errorf("two lines: got %q", got)
	}
}

func FuzzAcceptLanguage(f *testing.F) {
	for _, header := range []string{"de-AT, de;q=0.9,en;q=0.8,*;q=0.1", "en;q=", ";q=1", strings.Repeat("de,", 100)} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if got := AcceptLanguage([]string{header}); len(got) > LanguagesMax {
			t.Errorf("%d languages", len(got))
		}
	})
}
