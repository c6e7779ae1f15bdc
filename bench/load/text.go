package load

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// text is JSON with places that are filled in anew for each request.
type text []piece

type piece struct {
	literal string
	fill    func(dst []byte, c *content) []byte // nil: the literal
}

// content is what places are filled from. It belongs to one worker.
type content struct {
	random *rand.Rand
	count  *atomic.Int64 // {{n}} of the whole run
}

func newContent(seed uint64) *content {
	return &content{rand.New(rand.NewPCG(seed, 0)), new(atomic.Int64)}
}

func (t text) append(dst []byte, c *content) []byte {
	for i := range t {
		if t[i].fill == nil {
			dst = append(dst, t[i].literal...)
			continue
		}
		dst = t[i].fill(dst, c)
	}
	return dst
}

// placeholder is {{words}}; with the quotes around it, it is the whole of a string.
var placeholder = regexp.MustCompile(`"\{\{([^{}"]*)\}\}"|\{\{([^{}"]*)\}\}`)

// parseText finds the placeholders in a JSON text:
//
//	{{n}}               1, 2, 3 and so on, over the whole run
//	{{random 1 100}}    a whole number between the two, both included
//	{{choice a b c}}    one of the words
//	{{uuid}}            a random UUID
//
// A string that is n or random and nothing else becomes a number.
func parseText(json string) (text, error) {
	var t text
	for {
		at := placeholder.FindStringSubmatchIndex(json)
		literal := json
		if at != nil {
			literal = json[:at[0]]
		}
		if strings.Contains(literal, "{{") { // outside a text no JSON has that
			return nil, errNoEnd
		}
		if at == nil {
			return append(t, piece{literal: json}), nil
		}
		whole := at[2] >= 0
		words := json[max(0, at[2]):max(0, at[3])]
		if !whole {
			words = json[at[4]:at[5]]
		}
		fill, number, err := parsePlaceholder(strings.Fields(words))
		if err != nil {
			return nil, fmt.Errorf("{{%s}}: %w", words, err)
		}
		before, after := json[:at[0]], json[at[1]:]
		if whole && !number {
			before, after = before+`"`, `"`+after
		}
		t = append(t, piece{literal: before}, piece{fill: fill})
		json = after
	}
}

var errNoEnd = errors.New("{{ has no }}: a placeholder begins with the one and ends with the other")

var errPlaceholder = errors.New("a placeholder is {{n}}, {{random 1 100}}, {{choice a b}} or {{uuid}}")

// parsePlaceholder returns what fills a place, and whether that is a number.
func parsePlaceholder(words []string) (fill func([]byte, *content) []byte, number bool, err error) {
	switch {
	case slices.Equal(words, []string{"n"}):
		return func(dst []byte, c *content) []byte { return strconv.AppendInt(dst, c.count.Add(1), 10) }, true, nil
	case slices.Equal(words, []string{"uuid"}):
		return appendUUID, false, nil
	case len(words) > 1 && words[0] == "choice":
		return func(dst []byte, c *content) []byte { return append(dst, words[1+c.random.IntN(len(words)-1)]...) }, false, nil
	case len(words) == 3 && words[0] == "random":
		least, err := strconv.ParseInt(words[1], 10, 32)
		most, err2 := strconv.ParseInt(words[2], 10, 32)
		if errors.Join(err, err2) != nil || most < least {
			return nil, false, errors.New("random needs two whole numbers, the smaller one first, such as {{random 1 100}}")
		}
		return func(dst []byte, c *content) []byte {
			return strconv.AppendInt(dst, least+c.random.Int64N(most-least+1), 10)
		}, true, nil
	}
	return nil, false, errPlaceholder
}

// appendUUID appends a UUID of version 4 (RFC 9562).
func appendUUID(dst []byte, c *content) []byte {
	high := c.random.Uint64()&^0xf000 | 0x4000
	low := c.random.Uint64()&^(3<<62) | 2<<62
	digits := fmt.Appendf(nil, "%016x%016x", high, low)
	return append(dst, bytes.Join([][]byte{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, []byte{'-'})...)
}
