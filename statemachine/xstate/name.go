package xstate

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const longestName = 64

// nodeName returns the key of a state as the name of a node: other characters than letters, digits, "_", "~", "-" and
// inner blanks become "_" (statemachine/DEFINITION.md, "Names").
func nodeName(key string) string {
	name := []rune(strings.Map(func(r rune) rune {
		if r == ' ' || r == '~' || r == '-' || isWordRune(r) {
			return r
		}
		return '_'
	}, key))
	if len(name) == 0 {
		return "_"
	}
	if len(name) > longestName {
		name = name[:longestName]
	}
	if !isWordRune(name[0]) {
		name[0] = '_'
	}
	if last := len(name) - 1; name[last] == ' ' {
		name[last] = '_'
	}
	return string(name)
}

func isWordRune(r rune) bool {
	return r != utf8.RuneError && (r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r))
}
