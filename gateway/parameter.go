package gateway

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"troupe/actors/query"
)

// The query parameters of the lists (gateway/INTERFACE.md, "Paging"). parseQuery has
// refused unknown and repeated ones.

const (
	pageMax            = 1000 // entries of a page
	historyPageDefault = 100
)

// queryFields are the members that the entries of a query have on request.
var queryFields = []string{"svcHistory", "svcRedirect", fieldPrivate, fieldTitle}

// fieldTitle is the one that depends on the reader's language.
const fieldTitle = "title"

// fieldPrivate is the one that only holders of mod-workflows may ask for.
const fieldPrivate = "svcPrivate"

// parseQueryRequest parses the parameters of GET instances. An empty filter is like
// none; any other empty parameter is failure.ErrInvalid, because its meaning is unclear.
func parseQueryRequest(values url.Values) (*query.Request, error) {
	request := &query.Request{Filter: values.Get("filter")}
	var err error
	if request.Limit, err = parseLimit(values, 0); err != nil {
		return nil, err
	}
	if request.Cursor, err = parseCursor(values); err != nil {
		return nil, err
	}
	if request.Cursor != "" && request.Limit == 0 {
		return nil, malformed(`the query parameter "cursor" needs "limit"`)
	}
	if request.Sort, err = parseText(values, "sort"); err != nil {
		return nil, err
	}
	if request.Fields, err = parseFields(values); err != nil {
		return nil, err
	}
	if request.Count, err = parseFlag(values, "count"); err != nil {
		return nil, err
	}
	if request.Explain, err = parseFlag(values, "explain"); err != nil {
		return nil, err
	}
	return request, nil
}

// parseText returns the value of a parameter, "" when it is not there.
func parseText(query url.Values, name string) (string, error) {
	values := query[name]
	if len(values) == 0 {
		return "", nil
	}
	if values[0] == "" {
		return "", malformed("the query parameter %q is empty", name)
	}
	return values[0], nil
}

// parseCursor returns the cursor, "" when there is none. The workflows decode it. It
// must be visible ASCII here, because base64 decoders ignore line ends.
func parseCursor(query url.Values) (string, error) {
	cursor, err := parseText(query, "cursor")
	if err == nil && !isVisible(cursor) {
		err = malformed(`the query parameter "cursor" is not valid`)
	}
	return cursor, err
}

// parseLimit parses limit: 1 to pageMax, in decimal digits without leading zeros.
func parseLimit(query url.Values, fallback int) (int, error) {
	text, err := parseText(query, "limit")
	if err != nil || text == "" {
		return fallback, err
	}
	n, err := strconv.Atoi(text)
	// NB: Atoi accepts signs and leading zeros.
	if err != nil || n < 1 || n > pageMax || text[0] < '1' || text[0] > '9' {
		return 0, malformed(`the query parameter "limit" must be a number from 1 to %d`, pageMax)
	}
	return n, nil
}

// parseFlag parses a parameter that is true or false; a missing one is false.
func parseFlag(query url.Values, name string) (bool, error) {
	text, err := parseText(query, name)
	switch {
	case err != nil:
		return false, err
	case text == "true":
		return true, nil
	case text == "false" || text == "":
		return false, nil
	}
	return false, malformed("the query parameter %q must be true or false", name)
}

// parseFields parses the comma-separated list fields: known names, each once.
func parseFields(query url.Values) ([]string, error) {
	text, err := parseText(query, "fields")
	if err != nil || text == "" {
		return nil, err
	}
	var fields []string
	for name := range strings.SplitSeq(text, ",") {
		if !slices.Contains(queryFields, name) {
			return nil, malformed(`the query parameter "fields" has the unknown name %s; allowed are %s`, quote(name), strings.Join(queryFields, ", "))
		}
		if slices.Contains(fields, name) {
			return nil, malformed(`the query parameter "fields" has %q twice`, name)
		}
		fields = append(fields, name)
	}
	return fields, nil
}

// nextLink is the value of the header Link for the next page: a
// reference relative to the server, with the parameters of this request and the
// cursor. names are the parameters of the route, in the order of the result.
//
// NB: the reference contains input of the caller. Escaped, it is visible ASCII
// without angle brackets, quotes and commas.
func nextLink(path string, names []string, query url.Values, cursor string) string {
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
