package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
)

// FuzzBatch sends any bytes as a batch. Lines are answered as a reader answers them that
// has all of them at once, however they come in, and an array as its elements.
func FuzzBatch(f *testing.F) {
	s := newRouteFuzzer(f)
	for _, seed := range []string{
		"", "[]", "[1,{}]", eventBody + "\n" + createBody + "\r\n\n \n1\n{\n" + eventBody, "[" + eventBody + "," + createBody + "]", "[" + eventBody, eventBody + "\n\"\xff\"",
		strings.Repeat(createBody+"\n", 300), strings.Repeat("[", 65) + strings.Repeat("]", 65), strings.Repeat(" \n", 20_000) + `{"a":"` + strings.Repeat("b", 70_000) + `"}`,
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, byBytes bool) {
		send := func(contentType string, byBytes bool) answer {
			r := newTestRequest("POST", "/workflow/api/v1/events", " ", withToken, "Content-Type: "+contentType)
			r.ContentLength = -1
			var body io.Reader = bytes.NewReader(text)
			if byBytes {
				body = iotest.OneByteReader(body)
			}
			r.Body = io.NopCloser(body)
			w := newRecorder()
			s.ServeHTTP(w, r)
			return answer{Status: w.status, Body: w.body.String()}
		}
		want := ""
		for line := range bytes.SplitSeq(text, []byte{'\n'}) {
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			item, err := data.Clean(line)
			if err != nil {
				want += "400,"
				break
			}
			want += s.alone(item)
		}
		if got := send("application/x-ndjson", byBytes); got.Status != 200 || statusesOf(t, strings.Split(got.Body, "\n")) != want {
			t.Errorf("lines %q: got %d %s, want %s", text, got.Status, got.Body, want)
		}
		got := send("application/json", byBytes)
		if got.Status == 400 {
			items, err := data.CleanArray(text, 1<<20)
			assert.Error(t, err, "%q has %d items, and got %s", text, len(items), got.Body)
			return
		}
		var items []json.RawMessage
		var reply struct{ Results []json.RawMessage }
		require.True(t, json.Unmarshal(text, &items) == nil && json.Unmarshal([]byte(got.Body), &reply) == nil, "array %q: got %d %s", text, got.Status, got.Body)
		want = ""
		for _, item := range items {
			item, _ := data.Clean(item)
			want += s.alone(item)
		}
		var lines []string
		for _, result := range reply.Results {
			lines = append(lines, string(result))
		}
		assert.Equal(t, want, statusesOf(t, lines), "array %q", text)
	})
}

// alone is the status of an item in a request of its own.
func (s *routeFuzzer) alone(item data.Value) string {
	if item.Kind() != data.Object {
		return "400,"
	}
	path := "/workflow/api/v1/create"
	if _, isEvent := item.Lookup("instanceId"); isEvent {
		path = "/workflow/api/v1/event"
	}
	w := newRecorder()
	s.ServeHTTP(w, newTestRequest("POST", path, string(item), withToken, jsonLine))
	return strconv.Itoa(w.status) + ","
}

// statusesOf lists the statuses of results.
func statusesOf(t *testing.T, lines []string) (all string) {
	t.Helper()
	for _, line := range lines {
		if line == "" {
			continue
		}
		var r struct{ Status int }
		require.NoError(t, json.Unmarshal([]byte(line), &r), "result %q", line)
		all += strconv.Itoa(r.Status) + ","
	}
	return all
}
