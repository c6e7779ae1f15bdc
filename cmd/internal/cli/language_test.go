package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestReaderLanguage(t *testing.T) {
	for _, c := range []struct{ all, messages, lang, want string }{
		{"", "", "", ""},
		{"", "", "C.UTF-8", ""},
		{"", "", "POSIX", ""},
		{"", "", "de_AT.UTF-8", "de-AT"},
		{"", "fr_FR@euro", "de_AT.UTF-8", "fr-FR"},
		{"C", "fr_FR", "de_AT", ""},
		{"en", "", "de", "en"},
	} {
		t.Setenv("LC_ALL", c.all)
		t.Setenv("LC_MESSAGES", c.messages)
		t.Setenv("LANG", c.lang)
		assert.Equal(t, c.want, ReaderLanguage())
		got := ReaderLanguages()
		assert.Equal(t, c.want == "", len(got) == 0, "got %q", got)
	}
}
