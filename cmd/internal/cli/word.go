package cli

import (
	"fmt"
	"slices"
	"strings"

	"troupe/statemachine/document"
)

// DidYouMean is a suggestion behind an error; empty when no word is close.
func DidYouMean(word string, known []string) string {
	if text := Suggestion(word, known); text != "" {
		return "; " + text
	}
	return ""
}

// Suggestion asks for the known word that is meant; empty when none is near, or the word is known itself: then
// something else is wrong.
func Suggestion(word string, known []string) string {
	if near := document.Closest(word, known); near != "" && !slices.Contains(known, word) {
		return "did you mean " + near + "?"
	}
	return ""
}

// Plural counts things whose name takes an s.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// ShellWord is a word as it can be typed into a shell.
func ShellWord(s string) string {
	if strings.ContainsAny(s, " \t\n'\"$&|;<>(){}*?!\\`") || s == "" {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}
