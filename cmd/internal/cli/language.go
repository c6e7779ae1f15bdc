package cli

import (
	"cmp"
	"os"
	"strings"
)

// ReaderLanguage is the language of the environment as a tag of BCP 47 ("de-AT" of "de_AT.UTF-8"), empty for none.
func ReaderLanguage() string {
	locale := cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG"))
	locale, _, _ = strings.Cut(locale, ".")
	locale, _, _ = strings.Cut(locale, "@")
	if locale == "C" || locale == "POSIX" {
		return ""
	}
	return strings.ReplaceAll(locale, "_", "-")
}

// ReaderLanguages is it as a list.
func ReaderLanguages() []string {
	if language := ReaderLanguage(); language != "" {
		return []string{language}
	}
	return nil
}
