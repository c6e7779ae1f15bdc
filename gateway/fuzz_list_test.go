package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/query"
	"troupe/actors/watch"
	"troupe/gateway/internal/instances"
	"troupe/gateway/internal/kernel"
)

// The oracles of this file are regular expressions and net/url.

func FuzzQueryParameters(f *testing.F) {
	for _, seed := range []string{
		"", "filter=", "filter=a+b", "filter=%257B", "filter=%7B%7D&limit=3&cursor=c&sort=x&fields=svcHistory&count=true&explain=false", "x=1", "Limit=1", "offset=1",
		"limit=1", "limit=1000", "limit=%31%30", "%6Cimit=5", "limit=", "limit", "limit=0", "limit=1001", "limit=-1", "limit=+1", "limit=%2B1", "limit=01", "limit=1.0", "limit=1e2",
		"limit=0x1", "limit=1_0", "limit=%EF%BC%91", "limit=99999999999999999999", "limit=1&limit=2", "limit=9;count=true",
		"cursor=c", "limit=7&cursor=%3C%22%3E", "limit=1&cursor=", "limit=1&cursor=c%0A", "limit=1&cursor=a+b", "limit=1&cursor=%C3%BC", "sort=-_id", "sort=",
		"fields=svcHistory,svcRedirect", "fields=svcPrivate", "fields=", "fields=,", "fields=svcHistory,", "fields=svcHistory,svcHistory", "fields=svchistory",
		"fields=svcHistory,+svcRedirect", "fields=_id", "count=true&explain=false", "count=false", "count=", "count=1", "count=True", "explain=", "explain=TRUE",
	} {
		f.Add(seed)
	}
	var row *kernel.Route
	for _, r := range routes() {
		if r.Name == "instances" {
			row = &r
		}
	}
	shape := map[string]*regexp.Regexp{
		"filter":  regexp.MustCompile(`(?s)^.*$`),
		"limit":   regexp.MustCompile(`^([1-9][0-9]{0,2}|1000)$`),
		"cursor":  regexp.MustCompile(`^[!-~]+$`),
		"sort":    regexp.MustCompile(`(?s)^.+$`),
		"fields":  regexp.MustCompile(`^(svcHistory|svcRedirect|svcPrivate)(,(svcHistory|svcRedirect|svcPrivate))*$`),
		"count":   regexp.MustCompile(`^(true|false)$`),
		"explain": regexp.MustCompile(`^(true|false)$`),
	}
	f.Fuzz(func(t *testing.T, raw string) {
		x := kernel.Exchange{Route: row, Request: &http.Request{URL: &url.URL{RawQuery: raw}}}
		err := x.ParseQuery()
		var got *query.Request
		if err == nil {
			got, err = instances.ParseQueryRequest(x.Query)
		}
		values, stdErr := url.ParseQuery(raw)
		ok := stdErr == nil && (values.Get("cursor") == "" || values.Has("limit"))
		for name, list := range values {
			ok = ok && shape[name] != nil && len(list) == 1 && shape[name].MatchString(list[0])
		}
		names := strings.Split(values.Get("fields"), ",")
		slices.Sort(names)
		ok = ok && len(slices.Compact(slices.Clone(names))) == len(names)
		require.Equal(t, ok, err == nil, "%q: got %v, want ok", raw, err)
		if err != nil {
			checkRefusal(t, err)
			assert.ErrorIs(t, err, failure.ErrInvalid, raw)
			return
		}
		limit, _ := strconv.Atoi(values.Get("limit")) // 0 when it is not there
		if got.Limit != limit || got.Filter != values.Get("filter") || got.Cursor != values.Get("cursor") || got.Sort != values.Get("sort") ||
			strings.Join(got.Fields, ",") != values.Get("fields") || got.Count != (values.Get("count") == "true") || got.Explain != (values.Get("explain") == "true") {
			t.Errorf("%q: got %+v", raw, got)
		}
	})
}

// FuzzWatchEvent holds that whatever stands in the data, a client reads one
// event with that data.
func FuzzWatchEvent(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, "{\n\"a\":\r\n1}", "", "\n", "data: x\n\nid: 9\n\n", ": beat", "\u2028"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, kind := range []watch.Kind{watch.Entry, watch.Lost} {
			events := readEvents(string(instances.AppendWatchEvent(nil, watch.Event{Kind: kind, ID: "p1", Data: text})))
			want := strings.NewReplacer("\r", "\n").Replace(string(text))
			assert.True(t, len(events) == 1 && events[0].data == want && events[0].id == "p1", "%q is read as %+v", text, events)
			if json.Valid(text) && !json.Valid([]byte(events[0].data)) {
				t.Errorf("%q is no JSON any more: %q", text, events[0].data)
			}
		}
		assert.Equal(t, 2, bytes.Count(instances.AppendWatchEvent(nil, watch.Event{Kind: watch.Heartbeat}), []byte("\n")))
	})
}

// event is an event as a client sees it.
type event struct{ name, id, data string }

// readEvents reads a stream as WHATWG HTML says ("Interpreting an event
// stream").
func readEvents(stream string) []event {
	var events []event
	var now event
	var lines []string
	for line := range strings.SplitSeq(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(stream), "\n") {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && lines != nil:
			now.data = strings.Join(lines, "\n")
			events, lines = append(events, now), nil
		case field == "data":
			lines = append(lines, value)
		case field == "id":
			now.id = value
		case field == "event":
			now.name = value
		}
	}
	return events
}

// checkRefusal holds that an error of a reader is the caller's, and short.
func checkRefusal(t *testing.T, err error) {
	t.Helper()
	f := kernel.MappingOf(err)
	assert.False(t, f.Status != 400 && f.Status != 404, "%v is answered with %d", err, f.Status)
	text := f.Message(err, "")
	assert.LessOrEqual(t, len(text), 300, "a message, %q", text)
}
