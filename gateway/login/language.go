package login

import "strings"

// Language is a language of the pages that need no script of the console: the login page and
// the error pages.
type Language string

// The languages. English is for everybody who reads no other of them.
const (
	English Language = "en"
	German  Language = "de"
)

// Speak returns the first language that is among the reader's, whose tags (BCP 47) come in
// their order, such as "de-AT".
func Speak(tags []string) Language {
	for _, tag := range tags {
		base, _, _ := strings.Cut(tag, "-")
		switch l := Language(strings.ToLower(base)); l {
		case English, German:
			return l
		}
	}
	return English
}
