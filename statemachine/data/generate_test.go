package data_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"troupe/statemachine/data"
)

// What rapid draws: JSON texts with few different keys, so that objects meet,
// and with every spelling that JSON has for the same thing.

func numberText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.Int64().Draw(t, "int")) }),
		rapid.SampledFrom([]string{"0", "-0", "1", "1.0", "1e0", "10e-1", "0.10e1", "100", "1e2", "1E+2", "-1", "0.5", "5e-1", "9007199254740992", "9007199254740993", "1e400", "1e-400"}),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,10})?([eE][+-]?[0-9]{1,3})?`),
	)
}

func stringText() *rapid.Generator[string] {
	character := rapid.OneOf(
		rapid.SampledFrom([]string{"a", `\u0061`, "b", `\n`, `\u000A`, `\"`, `\\`, `\/`, "/", "é", `\u00e9`, `\u00E9`, "😀", `\ud83d\ude00`, `\u0000`, "\x7f", "\uffff", `\uffff`}),
		rapid.StringMatching(`[a-zA-Z0-9 ]{1,12}`),
	)
	return rapid.Custom(func(t *rapid.T) string {
		return `"` + strings.Join(rapid.SliceOfN(character, 0, 4).Draw(t, "characters"), "") + `"`
	})
}

// keyTexts are pairwise different keys; some have two spellings.
var keyTexts = [][]string{{`"a"`, `"\u0061"`}, {`"b"`}, {`"c"`}, {`""`}, {`"a.b"`}, {`"0"`}, {`"é"`, `"\u00e9"`, `"\u00E9"`}, {`"long key with blanks"`}, {`"😀"`, `"\ud83d\ude00"`}}

// valueText draws a compact JSON text, nested at most depth times.
func valueText(depth int) *rapid.Generator[string] {
	scalar := rapid.OneOf(rapid.SampledFrom([]string{"null", "true", "false"}), numberText(), stringText())
	if depth == 0 {
		return scalar
	}
	array := rapid.Custom(func(t *rapid.T) string {
		return "[" + strings.Join(rapid.SliceOfN(valueText(depth-1), 0, 3).Draw(t, "elements"), ",") + "]"
	})
	return rapid.OneOf(scalar, array, objectText(depth), objectText(depth))
}

func objectText(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		order := rapid.Permutation(keyTexts).Draw(t, "keys")
		var parts []string
		for _, spellings := range order[:rapid.IntRange(0, 5).Draw(t, "members")] {
			key := rapid.SampledFrom(spellings).Draw(t, "key")
			parts = append(parts, key+":"+valueText(depth-1).Draw(t, "value"))
		}
		return "{" + strings.Join(parts, ",") + "}"
	})
}

func value(depth int) *rapid.Generator[data.Value] {
	return rapid.Map(valueText(depth), func(s string) data.Value { return data.Value(s) })
}

func spacedText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		text := valueText(3).Draw(t, "text")
		blank := rapid.SampledFrom([]string{"", "", " ", "\n", "\t\r\n  "})
		var b strings.Builder
		inside := false
		for i := 0; i < len(text); i++ {
			c := text[i]
			if !inside && strings.IndexByte("{}[],:", c) >= 0 {
				b.WriteString(blank.Draw(t, "before"))
				b.WriteByte(c)
				b.WriteString(blank.Draw(t, "behind"))
				continue
			}
			b.WriteByte(c)
			if c == '\\' && inside {
				i++
				b.WriteByte(text[i])
			} else if c == '"' {
				inside = !inside
			}
		}
		return b.String()
	})
}

func keysOf(v data.Value) []string {
	var keys []string
	d := json.NewDecoder(strings.NewReader(string(v)))
	if open, _ := d.Token(); open != json.Delim('{') {
		return nil
	}
	for d.More() {
		key, _ := d.Token()
		keys = append(keys, key.(string))
		var skipped json.RawMessage
		_ = d.Decode(&skipped)
	}
	return keys
}
