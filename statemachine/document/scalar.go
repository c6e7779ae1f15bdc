package document

import (
	"math/big"
	"regexp"
	"strings"

	"troupe/statemachine/data"
)

// readPlain returns what a scalar without quotes is by YAML's core schema. The fault, when it has a reason, says why
// such a scalar is not taken; its place is the caller's to fill in.
func readPlain(s string) (Kind, Fault) {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return Null, Fault{}
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return Bool, Fault{}
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", ".nan", ".NaN", ".NAN":
		return Null, Fault{Reason: "JSON has no number " + s, Suggestion: "quote it if it is a text"}
	}
	literal, fault := readNumber(s)
	if literal != "" {
		return Number, Fault{}
	}
	return String, fault
}

var (
	// decimal is a number in digits, grouped by underscores or not; the parts are sign, integer, fraction and exponent.
	decimal = regexp.MustCompile(`^([-+]?)([0-9]+(?:_[0-9]+)*)?(?:\.([0-9]+(?:_[0-9]+)*)?)?([eE][-+]?[0-9]+)?$`)
	// based is a hexadecimal or octal number.
	based = regexp.MustCompile(`^0(?:x[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*|o[0-7]+(?:_[0-7]+)*)$`)
)

// maxBasedDigits bounds a hexadecimal or octal number: to convert one costs more than linear time.
const maxBasedDigits = 128

// readNumber returns the JSON literal of a number in YAML's spelling, and "" for what is no number. The fault, when it
// has a reason, says why s is neither a number nor a text.
func readNumber(s string) (literal string, fault Fault) {
	if s == "" || strings.IndexByte("+-.0123456789", s[0]) < 0 {
		return "", Fault{}
	}
	if based.MatchString(s) {
		return readBased(s)
	}
	// What JSON can write is put together again from its parts; of what it cannot,
	// a sign is dropped, a digit added, a point taken away. The digits stay.
	m := decimal.FindStringSubmatch(s)
	if m == nil || m[2] == "" && m[3] == "" {
		return "", Fault{}
	}
	sign, whole, fraction, exponent := m[1], ungroup(m[2]), ungroup(m[3]), m[4]
	if len(whole) > 1 && whole[0] == '0' {
		// NB: 010 is ten in YAML 1.2, eight in YAML 1.1, and may be meant as text.
		return "", Fault{
			Reason:     "a number with a leading zero: " + data.Quote(s),
			Suggestion: "quote it if it is a text, leave out the zero if not, write 0o for octal",
		}
	}
	if whole == "" {
		whole = "0"
	}
	if sign == "-" {
		literal = "-"
	}
	literal += whole
	if fraction != "" {
		literal += "." + fraction
	}
	literal += exponent
	if _, err := data.Clean([]byte(literal)); err != nil {
		return "", Fault{Reason: "the exponent is too large: " + data.Quote(s), Suggestion: "quote it if it is a text"}
	}
	return literal, Fault{}
}

// readBased converts a hexadecimal or octal number to decimal digits, of any size that fits the limit.
func readBased(s string) (literal string, fault Fault) {
	n, ok := new(big.Int), len(s) <= maxBasedDigits
	if ok {
		_, ok = n.SetString(ungroup(s), 0)
	}
	if !ok {
		return "", Fault{Reason: "the number is too long: " + data.Quote(s), Suggestion: "quote it if it is a text"}
	}
	return n.String(), Fault{}
}

func ungroup(digits string) string { return strings.ReplaceAll(digits, "_", "") }
