package instances

import (
	"net/url"
	"slices"
	"strings"

	"troupe/actors/query"
	"troupe/gateway/internal/parse"
)

// queryFields are the members that the entries of a query have on request.
var queryFields = []string{"svcHistory", "svcRedirect", fieldPrivate, fieldTitle}

// fieldTitle is the one that depends on the reader's language.
const fieldTitle = "title"

// fieldPrivate is the one that only holders of mod-workflows may ask for.
const fieldPrivate = "svcPrivate"

// ParseQueryRequest parses the parameters of GET instances. An empty filter is like
// none; any other empty parameter is failure.ErrInvalid, because its meaning is unclear.
func ParseQueryRequest(values url.Values) (*query.Request, error) {
	request := &query.Request{Filter: values.Get("filter")}
	var err error
	if request.Limit, err = parse.Limit(values, 0); err != nil {
		return nil, err
	}
	if request.Cursor, err = parse.Cursor(values); err != nil {
		return nil, err
	}
	if request.Cursor != "" && request.Limit == 0 {
		return nil, parse.Malformed(`the query parameter "cursor" needs "limit"`)
	}
	if request.Sort, err = parse.Text(values, "sort"); err != nil {
		return nil, err
	}
	if request.Fields, err = parseFields(values); err != nil {
		return nil, err
	}
	if request.Count, err = parse.Flag(values, "count"); err != nil {
		return nil, err
	}
	if request.Explain, err = parse.Flag(values, "explain"); err != nil {
		return nil, err
	}
	return request, nil
}

// parseFields parses the comma-separated list fields: known names, each once.
func parseFields(query url.Values) ([]string, error) {
	text, err := parse.Text(query, "fields")
	if err != nil || text == "" {
		return nil, err
	}
	var fields []string
	for name := range strings.SplitSeq(text, ",") {
		if !slices.Contains(queryFields, name) {
			return nil, parse.Malformed(`the query parameter "fields" has the unknown name %s; allowed are %s`, parse.Quote(name), strings.Join(queryFields, ", "))
		}
		if slices.Contains(fields, name) {
			return nil, parse.Malformed(`the query parameter "fields" has %q twice`, name)
		}
		fields = append(fields, name)
	}
	return fields, nil
}
