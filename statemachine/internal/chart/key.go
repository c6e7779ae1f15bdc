package chart

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// ErrKey: see statemachine.ErrKey.
var ErrKey = errors.New("the key of the instance cannot be made")

// maxKeyCost bounds the expressions of a key: ten times the cost of a single one.
const maxKeyCost = 10_000_000

// MaxKeyChars is the longest key of an instance, in characters.
const MaxKeyChars = 255

// HasKeys reports whether instances of the definition have keys (statemachine/DEFINITION.md, "Keys of instances").
func (d *Definition) HasKeys() bool { return d.Key != nil }

// IsKey reports whether text can be the key of an instance: 1 to MaxKeyChars characters that can be seen.
func IsKey(text string) bool {
	return text != "" && utf8.ValidString(text) && utf8.RuneCountInString(text) <= MaxKeyChars && !strings.ContainsFunc(text, unicode.IsControl)
}

// KeyOf makes the key of an instance that begins with svcPublic; "" when it has none. It returns ErrKey for data of which no key
// can be made.
func (d *Definition) KeyOf(public data.Value) (string, error) {
	if d.Key == nil {
		return "", nil
	}
	budget := expr.NewBudget(maxKeyCost)
	s := &expr.Scope{Budget: &budget, Public: data.Overlay(d.DefaultPublic, public), In: func(string) bool { return false }}
	var text strings.Builder
	for _, part := range d.Key.Parts {
		if part.Program == nil {
			text.WriteString(part.Literal)
			continue
		}
		v, err := part.Program.Value(s)
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrKey, err)
		}
		switch v.Kind() {
		case data.String:
			if v.Text() == "" {
				return "", nil
			}
			text.WriteString(v.Text())
		case data.Null:
			return "", nil
		case data.Number:
			if strings.ContainsAny(string(v), ".eE") {
				return "", fmt.Errorf("%w: a number in it must be an integer, not %s", ErrKey, data.Shorten(string(v)))
			}
			text.Write(v)
		default:
			return "", fmt.Errorf("%w: must be made of texts and integers, not of %s", ErrKey, v.Kind())
		}
	}
	if !IsKey(text.String()) {
		return "", fmt.Errorf("%w: must have 1 to %d characters, and no control characters", ErrKey, MaxKeyChars)
	}
	return text.String(), nil
}
