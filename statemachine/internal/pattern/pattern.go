// Package pattern measures regular expressions before they are compiled: one of 20 bytes can take a gigabyte.
package pattern

import (
	"fmt"
	"regexp/syntax"
)

const (
	// SizeMax is how many instructions a regular expression may have. The time of a match is their number times the length of the
	// text, and each takes some 400 bytes.
	SizeMax = 2_000
	// bytesMax is how long a regular expression may be. Reading it costs before its size is known.
	bytesMax = 4 << 10
)

// Size is how many instructions a regular expression compiles to, or a few more. The error is that of one which is too large or wrong.
func Size(text string) (int, error) {
	if len(text) > bytesMax {
		return 0, fmt.Errorf("longer than %d bytes", bytesMax)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, err
	}
	size := instructions(tree)
	if size > SizeMax {
		return size, fmt.Errorf("it has %d instructions, the limit is %d: a repetition counts as what it repeats, so many times", size, SizeMax)
	}
	return size, nil
}

// instructions is how many instructions the expression compiles to, or a few more.
func instructions(re *syntax.Regexp) int {
	below := 0
	for _, sub := range re.Sub {
		below += instructions(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpAlternate:
		return below + len(re.Sub)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		return below + 1
	case syntax.OpCapture:
		return below + 2
	case syntax.OpRepeat:
		if re.Max < 0 {
			return below*max(re.Min, 1) + 1
		}
		return below*re.Max + re.Max - re.Min
	case syntax.OpConcat:
		return below
	}
	return 1
}
