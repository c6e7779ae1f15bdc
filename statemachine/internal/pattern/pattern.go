// Package pattern measures regular expressions before they are compiled: one of 20 bytes can take a gigabyte.
package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

const (
	// SizeMax is how many instructions a regular expression may have. The time of a match is their number times the length of the
	// text, and each takes some 400 bytes.
	SizeMax = 2_000
	// bytesMax is how long a regular expression may be. Reading it costs before its size is known.
	bytesMax = 4 << 10
)

// Cost is what a regular expression takes.
type Cost struct {
	// Size is how many instructions it compiles to, or a few more.
	Size int
	// Weight is Size, and what reading and keeping it take beyond that of usual instructions.
	Weight int
	// Reading is how long it takes to read and compile, in the units of expressions.
	Reading int
}

const (
	// unitsPerInstruction is what an instruction stands for while a file is read.
	unitsPerInstruction = 1_400
	// readingMax is what reading one may take.
	readingMax = SizeMax * unitsPerInstruction
	// Reading takes so many units for a byte, for a class by name and for two characters of a range
	// whose other cases are looked for, and compiling so many for an instruction.
	byteReading, classReading, foldReading, compiling = 6, 2_500, 3, 20
	// rangesPerInstruction is how many ends of the ranges of a class take as much memory as an instruction. A class
	// has them once for each instruction.
	rangesPerInstruction = 264
)

// Of measures a regular expression. The error is that of one which is too large or wrong.
func Of(text string) (Cost, error) {
	if len(text) > bytesMax {
		return Cost{}, fmt.Errorf("longer than %d bytes", bytesMax)
	}
	c := Cost{Reading: Reading(text)}
	if c.Reading > readingMax {
		return c, errors.New(`it takes too long to read: it has many classes by name, such as \pL, or with (?i) many long ranges`)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return c, err
	}
	c.Size, c.Weight = instructions(tree)
	if c.Size > SizeMax {
		return c, fmt.Errorf("it has %d instructions, the limit is %d: a repetition counts as what it repeats, so many times", c.Size, SizeMax)
	}
	c.Weight += c.Reading / unitsPerInstruction
	c.Reading += c.Size * compiling
	return c, nil
}

// Compile compiles a regular expression that Of has nothing against.
func Compile(text string) (*regexp.Regexp, Cost, error) {
	cost, err := Of(text)
	if err != nil {
		return nil, cost, err
	}
	re, err := regexp.Compile(text)
	return re, cost, err
}

// Share is how many instructions handle a byte in one unit, when all are at work.
const Share = 4

// Match is what a match takes at most, in units.
func Match(size, bytes int) int { return size * (bytes + 1) / Share }

// Reading is how long the text takes to read, in units: what syntax.Parse does before the size is known. A range of which the other cases
// are looked for is gone through character by character.
func Reading(text string) int {
	units := byteReading*len(text) + classReading*(strings.Count(text, `\p`)+strings.Count(text, `\P`))
	if !folding.MatchString(text) {
		return units
	}
	for at := range len(text) {
		if text[at] == '-' {
			low, _ := utf8.DecodeLastRuneInString(text[:at])
			units += max(0, int(rangeEnd(text[at+1:]))-int(low)) * foldReading / 2
		}
	}
	return units
}

// folding finds the flag i, and perhaps something else that looks like it.
var folding = regexp.MustCompile(`\(\?[a-zA-Z-]*i`)

// caseEnd is above the last character that has other cases.
const caseEnd = 0x1e944

// rangeEnd is the character that the text begins with, or one behind it.
func rangeEnd(text string) rune {
	end, bytes := utf8.DecodeRuneInString(text)
	if bytes == 0 {
		return 0
	}
	if end == '\\' {
		end = 0o777 // the most that is written without x
		if strings.HasPrefix(text, `\x`) {
			end = caseEnd
		}
	}
	return min(end, caseEnd)
}

// instructions is how many instructions the expression compiles to, or a few more, and what they weigh.
func instructions(re *syntax.Regexp) (size, weight int) {
	for _, sub := range re.Sub {
		n, w := instructions(sub)
		size, weight = size+n, weight+w
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune), len(re.Rune)
	case syntax.OpCharClass:
		return 1, 1 + len(re.Rune)/rangesPerInstruction
	case syntax.OpAlternate:
		return size + len(re.Sub), weight + len(re.Sub)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		return size + 1, weight + 1
	case syntax.OpCapture:
		return size + 2, weight + 2
	case syntax.OpRepeat:
		times, more := re.Max, re.Max-re.Min
		if re.Max < 0 {
			times, more = max(re.Min, 1), 1
		}
		return size*times + more, weight*times + more
	case syntax.OpConcat:
		return size, weight
	}
	return 1, 1
}
