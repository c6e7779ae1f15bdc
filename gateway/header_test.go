package gateway

import (
	"slices"
	"strings"
	"testing"
)

// TestIdempotencyKey holds gateway/INTERFACE.md, "Retries": the forms of a key.
func TestIdempotencyKey(t *testing.T) {
	withID := strings.Replace(eventBody, `"name"`, `"id":"k1","name"`, 1)
	long := strings.Repeat("k", 255)
	cases := []struct {
		line    string
		body    string
		headers []string
		status  int
		key     string
	}{
		{"no key", eventBody, nil, 200, ""},
		{"a bare key", eventBody, []string{"Idempotency-Key: k1"}, 200, "k1"},
		{"a quoted key is the same", eventBody, []string{`Idempotency-Key: "k1"`}, 200, "k1"},
		{"escapes in a quoted key", eventBody, []string{`Idempotency-Key: "a\"b\\c"`}, 200, `a"b\c`},
		{"a bare key with a quote inside", eventBody, []string{`Idempotency-Key: a"b`}, 200, `a"b`},
		{"255 characters", eventBody, []string{"Idempotency-Key: " + long}, 200, long},
		{"255 characters within quotes", eventBody, []string{`Idempotency-Key: "` + long + `"`}, 200, long},
		{"event.id", withID, nil, 200, "k1"},
		{"event.id and the same key", withID, []string{`Idempotency-Key: "k1"`}, 200, "k1"},

		{"event.id and another key", withID, []string{"Idempotency-Key: k2"}, 400, ""},
		{"an empty key", eventBody, []string{"Idempotency-Key: "}, 400, ""},
		{"an empty quoted key", eventBody, []string{`Idempotency-Key: ""`}, 400, ""},
		{"256 characters", eventBody, []string{"Idempotency-Key: " + long + "k"}, 400, ""},
		{"a blank inside", eventBody, []string{"Idempotency-Key: a b"}, 400, ""},
		{"a blank inside quotes", eventBody, []string{`Idempotency-Key: "a b"`}, 400, ""},
		{"not ASCII", eventBody, []string{"Idempotency-Key: ü"}, 400, ""},
		{"an open quote", eventBody, []string{`Idempotency-Key: "k1`}, 400, ""},
		{"a quote alone", eventBody, []string{`Idempotency-Key: "`}, 400, ""},
		{"something behind the quote", eventBody, []string{`Idempotency-Key: "k1"x`}, 400, ""},
		{"a parameter behind the quote", eventBody, []string{`Idempotency-Key: "k1";a=1`}, 400, ""},
		{"an escaped last quote", eventBody, []string{`Idempotency-Key: "k1\"`}, 400, ""},
		{"an escape of another character", eventBody, []string{`Idempotency-Key: "k\1"`}, 400, ""},
		{"a quote inside quotes", eventBody, []string{`Idempotency-Key: "a"b"`}, 400, ""},
		{"repeated", eventBody, []string{"Idempotency-Key: k1", "Idempotency-Key: k1"}, 400, ""},
	}
	s := startServer(t, Options{}, nil)
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			a := s.do(t, post("event", c.body, c.headers...))
			if a.status != c.status {
				t.Fatalf("got %d %s, want %d", a.status, a.body, c.status)
			}
			if c.status != 200 {
				return
			}
			got := s.workflows.lastEvent().Retry
			if got.Key != c.key {
				t.Errorf("got the key %q, want %q", got.Key, c.key)
			}
			if hasPrint := got.Fingerprint != [32]byte{}; hasPrint != (c.key != "") {
				t.Errorf("got a fingerprint: %v", hasPrint)
			}
		})
	}
	t.Run("create takes the header too", func(t *testing.T) {
		s.do(t, post("create", createBody, "Idempotency-Key: k7"))
		if got := s.workflows.lastCreate().Retry.Key; got != "k7" {
			t.Errorf("got the key %q, want k7", got)
		}
		if a := s.do(t, post("create", createBody, "Idempotency-Key: ")); a.status != 400 {
			t.Errorf("an empty key: got %d, want 400", a.status)
		}
	})
}

// TestFingerprint holds gateway/INTERFACE.md, "Retries": the fingerprint is the
// same for what asks the same, and only then.
func TestFingerprint(t *testing.T) {
	s := startServer(t, Options{}, nil)
	of := func(body string, headers ...string) [32]byte {
		a := s.do(t, post("event", body, append(headers, "Idempotency-Key: k")...))
		if a.status != 200 {
			t.Fatalf("got %d %s", a.status, a.body)
		}
		return s.workflows.lastEvent().Retry.Fingerprint
	}
	base := of(eventBody)
	if of(" "+strings.ReplaceAll(eventBody, ":", " : ")) != base {
		t.Error("white space changes the fingerprint")
	}
	if of(eventBody, "Prefer: return=minimal") != base {
		t.Error("the form of the answer changes the fingerprint")
	}
	if of(strings.Replace(eventBody, `"a":1`, `"a":2`, 1)) == base {
		t.Error("other data has the same fingerprint")
	}
	s.do(t, post("create", createBody, "Idempotency-Key: k"))
	if fingerprint("POST", "create", []byte(createBody)) != s.workflows.lastCreate().Retry.Fingerprint {
		t.Error("the fingerprint is not that of method, route and compact body")
	}
	if fingerprint("POST", "create", []byte(createBody)) == fingerprint("POST", "event", []byte(createBody)) {
		t.Error("another route has the same fingerprint")
	}
}

// TestIfMatch holds gateway/INTERFACE.md, "Concurrent editing", and RFC 9110,
// 13.1.1.
func TestIfMatch(t *testing.T) {
	cases := []struct {
		line  string
		lines []string
		want  []uint64
		bad   bool
	}{
		{"absent means any", nil, nil, false},
		{"a star means any", []string{"*"}, nil, false},
		{"one tag", []string{`"7"`}, []uint64{7}, false},
		{"a list", []string{`"7", "8" ,"9"`}, []uint64{7, 8, 9}, false},
		{"several lines are one list", []string{`"7"`, `"8"`}, []uint64{7, 8}, false},
		{"empty elements are ignored", []string{`,"7",, "8",`}, []uint64{7, 8}, false},
		{"a weak tag never matches", []string{`W/"7"`}, []uint64{0}, false},
		{"a weak tag beside a strong one", []string{`W/"7", "8"`}, []uint64{8}, false},
		{"a tag that is no number never matches", []string{`"abc"`}, []uint64{0}, false},
		{"a number that we would not write never matches", []string{`"07", "+7", "0x7", "7 "`}, nil, true},
		{"leading zeros", []string{`"07"`}, []uint64{0}, false},
		{"a sign", []string{`"+7"`}, []uint64{0}, false},
		{"zero", []string{`"0"`}, []uint64{0}, false},
		{"an empty tag", []string{`""`}, []uint64{0}, false},
		{"the largest", []string{`"18446744073709551615"`}, []uint64{18446744073709551615}, false},
		{"beyond the largest", []string{`"18446744073709551616"`}, []uint64{0}, false},
		{"no quotes", []string{`7`}, nil, true},
		{"an open quote", []string{`"7`}, nil, true},
		{"empty", []string{``}, nil, true},
		{"only commas", []string{`, ,`}, nil, true},
		{"a star among tags", []string{`"7", *`}, nil, true},
		{"two stars", []string{`*`, `*`}, nil, true},
		{"no comma", []string{`"7" "8"`}, nil, true},
		{"a small w", []string{`w/"7"`}, nil, true},
		{"a blank in a tag", []string{`"a b"`}, nil, true},
		{"too many", []string{strings.Repeat(`"7",`, 257)}, nil, true},
	}
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			got, err := parseIfMatch(c.lines)
			if (err != nil) != c.bad || !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) {
				t.Errorf("parseIfMatch(%.40q): got %v, %v; want %v, bad %v", c.lines, got, err, c.want, c.bad)
			}
		})
	}
	s := startServer(t, Options{}, nil)
	if a := s.do(t, post("event", eventBody, `If-Match: "3"`)); a.status != 200 || !slices.Equal(s.workflows.lastEvent().IfMatch, []uint64{3}) {
		t.Errorf("over the wire: got %d, %v", a.status, s.workflows.lastEvent().IfMatch)
	}
	if a := s.do(t, post("event", eventBody, `If-Match: 3`)); a.status != 400 || a.label() != "InvalidContent" {
		t.Errorf("malformed: got %d %s, want 400", a.status, a.body)
	}
}

// TestPrefer holds gateway/INTERFACE.md, "Prefer", and RFC 7240.
func TestPrefer(t *testing.T) {
	cases := []struct {
		line  string
		lines []string
		want  bool
	}{
		{"absent", nil, false},
		{"as it should be", []string{"return=minimal"}, true},
		{"blanks", []string{" return = minimal "}, true},
		{"quoted", []string{`return="minimal"`}, true},
		{"names ignore the case", []string{"Return=minimal"}, true},
		{"values do not", []string{"return=Minimal"}, false},
		{"parameters are passed over", []string{"return=minimal; foo=bar"}, true},
		{"among others", []string{"respond-async, wait=10, return=minimal"}, true},
		{"in the second line", []string{"wait=10", "return=minimal"}, true},
		{"the first return counts", []string{"return=representation, return=minimal"}, false},
		{"the other wish", []string{"return=representation"}, false},
		{"without a value", []string{"return"}, false},
		{"inside a quoted string", []string{`foo="a, return=minimal"`}, false},
		{"behind a quoted string with escapes", []string{`foo="a\",", return=minimal`}, true},
		{"inside an open quote", []string{`foo="a, return=minimal`}, false},
		{"another name", []string{"xreturn=minimal"}, false},
		{"empty", []string{"", ","}, false},
	}
	for _, c := range cases {
		if got := prefersMinimal(c.lines); got != c.want {
			t.Errorf("%s: prefersMinimal(%q): got %v, want %v", c.line, c.lines, got, c.want)
		}
	}
	s := startServer(t, Options{}, nil)
	for _, r := range []request{post("create", createBody), post("event", eventBody), get("/workflow/api/v1/instance/leave/i1")} {
		r.headers = append(r.headers, "Prefer: return=minimal")
		a := s.do(t, r)
		if a.status != 200 || strings.Contains(a.body, "svcHistory") || a.header.Get("Preference-Applied") != "return=minimal" {
			t.Errorf("%s: got %d %s, applied %q", r.path, a.status, a.body, a.header.Get("Preference-Applied"))
		}
	}
}
