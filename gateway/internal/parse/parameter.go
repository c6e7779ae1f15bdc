package parse

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The query parameters of the lists (gateway/INTERFACE.md, "Paging"). Exchange.ParseQuery of package kernel has refused unknown and repeated ones.

const (
	pageMax     = 1000 // entries of a page
	PageDefault = 100
)

// Parameters reads the parameters of a query. Err is the first fault; after it everything is read as if it was not there.
type Parameters struct {
	Values url.Values
	Err    error
}

// Refuse has the query refused, if nothing was wrong with it before.
func (q *Parameters) Refuse(format string, args ...any) {
	if q.Err == nil {
		q.Err = Malformed(format, args...)
	}
}

// Text returns the value of a parameter, "" when it is not there.
func (q *Parameters) Text(name string) string {
	values := q.Values[name]
	if len(values) == 0 || q.Err != nil {
		return ""
	}
	if values[0] == "" {
		q.Refuse("the query parameter %q is empty", name)
	}
	return values[0]
}

// Cursor returns the cursor, "" when there is none. The workflows decode it. It
// must be visible ASCII here, because base64 decoders ignore line ends.
func (q *Parameters) Cursor() string {
	cursor := q.Text("cursor")
	if !IsVisible(cursor) {
		q.Refuse(`the query parameter "cursor" is not valid`)
	}
	return cursor
}

// Limit parses limit: 1 to pageMax, in decimal digits without leading zeros.
func (q *Parameters) Limit(fallback int) int {
	text := q.Text("limit")
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	// NB: Atoi accepts signs and leading zeros.
	if err != nil || n < 1 || n > pageMax || text[0] < '1' || text[0] > '9' {
		q.Refuse(`the query parameter "limit" must be a number from 1 to %d`, pageMax)
	}
	return n
}

// Number parses a number from 1, in decimal digits without leading zeros; 0 when it is not there.
func (q *Parameters) Number(name string) uint64 {
	text := q.Text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || text[0] < '1' || text[0] > '9' {
		q.Refuse("the query parameter %q must be a number from 1", name)
	}
	return n
}

// Flag parses a parameter that is true or false; a missing one is false.
func (q *Parameters) Flag(name string) bool {
	text := q.Text(name)
	if text != "" && text != "true" && text != "false" {
		q.Refuse("the query parameter %q must be true or false", name)
	}
	return text == "true"
}

// NextLink is the value of the header Link for the next page: a reference relative to the server, with the parameters
// of this request and the cursor. names are the parameters of the route, in the order of the result.
//
// NB: the reference contains input of the caller. Escaped, it is visible ASCII
// without angle brackets, quotes and commas.
func NextLink(path string, names []string, query url.Values, cursor string) string {
	var b strings.Builder
	for _, name := range names {
		if values := query[name]; name != "cursor" && len(values) > 0 {
			b.WriteString(url.QueryEscape(name) + "=" + url.QueryEscape(values[0]) + "&")
		}
	}
	b.WriteString("cursor=" + url.QueryEscape(cursor))
	reference := url.URL{Path: path, RawQuery: b.String()}
	return "<" + reference.String() + `>; rel="next"`
}

// Choice returns a parameter that has one of few values, "" when it is not there.
func Choice[T ~string](q *Parameters, name string, known ...T) T {
	text := T(q.Text(name))
	if text != "" && !slices.Contains(known, text) {
		q.Refuse("the query parameter %q must be %s", name, ChoiceText(known))
	}
	return text
}

// ChoiceText names the values that a parameter or member can have.
func ChoiceText[T ~string](known []T) string {
	texts := make([]string, len(known))
	for i, k := range known {
		texts[i] = `"` + string(k) + `"`
	}
	return strings.Join(texts, " or ")
}

// Version reads the number of a version, without signs and leading zeros.
func Version(text string) (number uint64, ok bool) {
	number, err := strconv.ParseUint(text, 10, 64)
	return number, err == nil && number > 0 && number <= math.MaxInt64 && strconv.FormatUint(number, 10) == text
}

// Order is in which order a history or an activity comes.
type Order string

const (
	Ascending  Order = "asc"
	Descending Order = "desc"
)

// queryCharsMax bounds the words of a search, each of which is looked for in thousands of titles.
const queryCharsMax = 200

// CheckWords refuses a parameter "q" that is too long.
func (q *Parameters) CheckWords(words string) {
	if utf8.RuneCountInString(words) > queryCharsMax {
		q.Refuse(`the query parameter "q" has more than %d characters`, queryCharsMax)
	}
}
