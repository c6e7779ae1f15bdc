package templatetest

import (
	"fmt"

	"pgregory.net/rapid"
)

// Reference writes a character as a reference of XML: by name if it has one, by
// number.
func Reference(t *rapid.T, r rune) string {
	forms := []string{fmt.Sprintf("&#%d;", r), fmt.Sprintf("&#x%x;", r), fmt.Sprintf("&#x%08X;", r)}
	if name, named := map[rune]string{'<': "&lt;", '>': "&gt;", '&': "&amp;", '"': "&quot;", '\'': "&apos;"}[r]; named {
		forms = append(forms, name, name)
	}
	return rapid.SampledFrom(forms).Draw(t, "reference")
}

// Escape writes a text for XML: what must be a reference is one, and now and then
// what need not be.
func Escape(t *rapid.T, text string) string {
	out := ""
	for _, r := range text {
		if r == '<' || r == '&' || r == '>' || rapid.IntRange(0, 15).Draw(t, "escape") == 0 {
			out += Reference(t, r)
		} else {
			out += string(r)
		}
	}
	return out
}
