package parse

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The query parameters of the lists (gateway/INTERFACE.md, "Paging"). parseQuery has refused unknown and repeated ones.

const (
	pageMax     = 1000 // entries of a page
	PageDefault = 100
)

// Text returns the value of a parameter, "" when it is not there.
func Text(query url.Values, name string) (string, error) {
	values := query[name]
	if len(values) == 0 {
		return "", nil
	}
	if values[0] == "" {
		return "", Malformed("the query parameter %q is empty", name)
	}
	return values[0], nil
}

// Cursor returns the cursor, "" when there is none. The workflows decode it. It
// must be visible ASCII here, because base64 decoders ignore line ends.
func Cursor(query url.Values) (string, error) {
	cursor, err := Text(query, "cursor")
	if err == nil && !IsVisible(cursor) {
		err = Malformed(`the query parameter "cursor" is not valid`)
	}
	return cursor, err
}

// Limit parses limit: 1 to pageMax, in decimal digits without leading zeros.
func Limit(query url.Values, fallback int) (int, error) {
	text, err := Text(query, "limit")
	if err != nil || text == "" {
		return fallback, err
	}
	n, err := strconv.Atoi(text)
	// NB: Atoi accepts signs and leading zeros.
	if err != nil || n < 1 || n > pageMax || text[0] < '1' || text[0] > '9' {
		return 0, Malformed(`the query parameter "limit" must be a number from 1 to %d`, pageMax)
	}
	return n, nil
}

// Flag parses a parameter that is true or false; a missing one is false.
func Flag(query url.Values, name string) (bool, error) {
	text, err := Text(query, name)
	switch {
	case err != nil:
		return false, err
	case text == "true":
		return true, nil
	case text == "false" || text == "":
		return false, nil
	}
	return false, Malformed("the query parameter %q must be true or false", name)
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
func Choice[T ~string](query url.Values, name string, known ...T) (T, error) {
	text, err := Text(query, name)
	if err == nil && text != "" && !slices.Contains(known, T(text)) {
		err = Malformed("the query parameter %q must be %s", name, ChoiceText(known))
	}
	return T(text), err
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
func CheckWords(words string) error {
	if utf8.RuneCountInString(words) > queryCharsMax {
		return Malformed(`the query parameter "q" has more than %d characters`, queryCharsMax)
	}
	return nil
}
