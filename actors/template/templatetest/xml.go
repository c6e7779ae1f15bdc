package templatetest

import (
	"fmt"
	"strings"
)

// Pick chooses one of n things: 0 to n-1.
type Pick func(n int) int

// Reference writes a character as a reference of XML: by its name, if it has one, or by its number.
func Reference(pick Pick, r rune) string {
	forms := []string{fmt.Sprintf("&#%d;", r), fmt.Sprintf("&#x%x;", r), fmt.Sprintf("&#x%08X;", r)}
	if name, named := map[rune]string{'<': "&lt;", '>': "&gt;", '&': "&amp;", '"': "&quot;", '\'': "&apos;"}[r]; named {
		forms = append(forms, name, name)
	}
	return forms[pick(len(forms))]
}

// Escape writes a text for XML: the characters of must as references, and now and then others.
func Escape(pick Pick, text, must string) string {
	var out strings.Builder
	for _, r := range text {
		if strings.ContainsRune(must, r) || pick(16) == 0 {
			out.WriteString(Reference(pick, r))
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}
