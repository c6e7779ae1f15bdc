package gateway

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"troupe/actors/workflow"
)

// What the query parameters of the lists say (gateway/INTERFACE.md, "Paging").
// Names that are unknown or repeated never come here, see parseQuery.

const (
	pageMax            = 1000 // entries of a page
	historyPageDefault = 100
)

// queryFields are what entries of a query can carry besides the usual.
var queryFields = []string{"svcHistory", "svcRedirect", fieldPrivate}

// fieldPrivate is the one that only holders of mod-workflows may ask for.
const fieldPrivate = "svcPrivate"

// parseQueryRequest reads the parameters of GET instances. An empty filter is
// none; any other parameter that is empty is errMalformed, because whoever sends
// it means something that we do not know.
func parseQueryRequest(query url.Values) (*workflow.QueryRequest, error) {
	request := &workflow.QueryRequest{Filter: query.Get("filter")}
	var err error
	if request.Limit, err = parseLimit(query, 0); err != nil {
		return nil, err
	}
	if request.Cursor, err = parseCursor(query); err != nil {
		return nil, err
	}
	if request.Cursor != "" && request.Limit == 0 {
		return nil, refuse(errMalformed, `the query parameter "cursor" needs "limit"`)
	}
	if request.Sort, err = parseText(query, "sort"); err != nil {
		return nil, err
	}
	if request.Fields, err = parseFields(query); err != nil {
		return nil, err
	}
	if request.Count, err = parseFlag(query, "count"); err != nil {
		return nil, err
	}
	if request.Explain, err = parseFlag(query, "explain"); err != nil {
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
		return "", refuse(errMalformed, "the query parameter %q is empty", name)
	}
	return values[0], nil
}

// parseCursor returns the cursor, "" when there is none. What it says only the
// workflows know; but none of theirs has a blank or a line end, which readers of
// what it is encoded in pass over.
func parseCursor(query url.Values) (string, error) {
	cursor, err := parseText(query, "cursor")
	if err == nil && !isVisible(cursor) {
		err = refuse(errMalformed, `the query parameter "cursor" is none of ours`)
	}
	return cursor, err
}

// parseLimit reads limit: 1 to pageMax, in decimal digits as a number is
// usually written.
func parseLimit(query url.Values, otherwise int) (int, error) {
	text, err := parseText(query, "limit")
	if err != nil || text == "" {
		return otherwise, err
	}
	n, err := strconv.Atoi(text)
	// NB: Atoi takes signs and leading zeros, which no number begins with here.
	if err != nil || n < 1 || n > pageMax || text[0] < '1' || text[0] > '9' {
		return 0, refuse(errMalformed, `the query parameter "limit" must be a number from 1 to %d`, pageMax)
	}
	return n, nil
}

// parseFlag reads a parameter that is true or false; not there is false.
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
	return false, refuse(errMalformed, "the query parameter %q must be true or false", name)
}

// parseFields reads the comma list fields: known names, each once.
func parseFields(query url.Values) ([]string, error) {
	text, err := parseText(query, "fields")
	if err != nil || text == "" {
		return nil, err
	}
	var fields []string
	for name := range strings.SplitSeq(text, ",") {
		if !slices.Contains(queryFields, name) {
			return nil, refuse(errMalformed, `the query parameter "fields" knows no %s; it can have %s`, quote(name), strings.Join(queryFields, ", "))
		}
		if slices.Contains(fields, name) {
			return nil, refuse(errMalformed, `the query parameter "fields" names %q twice`, name)
		}
		fields = append(fields, name)
	}
	return fields, nil
}

// nextLink is the value of the header Link that leads to the next page: a
// reference relative to the server, with the parameters of this request and the
// cursor. names are the parameters of the route, in the order of the result.
//
// NB: what stands between the angle brackets comes from the caller. Escaped, it
// has only visible ASCII without brackets, quotes and commas.
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
