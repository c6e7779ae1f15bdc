package gateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/internal/parse"
)

// TestHeaders plays testdata/header.txt.
func TestHeaders(t *testing.T) {
	datadriven.RunTest(t, "testdata/header.txt", func(t *testing.T, d *datadriven.TestData) (out string) {
		for line := range strings.SplitSeq(d.Input, "\n") {
			var lines []string
			text := strings.Replace(line, "{de,*1000}", strings.Repeat("de,", 1000), 1)
			for _, n := range []int{60, 61, 64, 65} {
				text = strings.Replace(text, fmt.Sprintf("{x*%d}", n), strings.Repeat("x", n), 1)
			}
			require.NoError(t, json.NewDecoder(strings.NewReader(text)).Decode(&lines), line)
			got := map[string]func() any{
				"prefer":          func() any { return parse.PrefersMinimal(lines) },
				"accept-language": func() any { return parse.AcceptLanguage(lines) },
				"accepts-gzip":    func() any { return parse.AcceptsGzip(lines) },
				"quote":           func() any { return parse.Quote(strings.Replace(lines[0], "{ff}", "\xff", 1)) },
			}[d.Cmd]()
			out += fmt.Sprintln(line, "=>", got)
		}
		return out
	})
}

func FuzzAcceptLanguage(f *testing.F) {
	for _, header := range []string{"de-AT, de;q=0.9,en;q=0.8,*;q=0.1", "en;q=", ";q=1", strings.Repeat("de,", 100)} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		assert.LessOrEqual(t, len(parse.AcceptLanguage([]string{header})), parse.LanguagesMax, "languages")
	})
}

// Limits of gateway/INTERFACE.md, "Limits of inputs".
const entityTagsMax, lastEventIDCharsMax = 256, 8 << 10

// The oracles of this file are the obvious versions of the readers: regular
// expressions and the standard library instead of loops.

// Credentials of the right form.
const (
	tokenSeed   = "tok_aaaaaaaaaaaaaaaa.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	tokenOther  = "tok_bbbbbbbbbbbbbbbb.BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
	sessionSeed = "ses_cccccccccccccccc.CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC"
)

var tokenHeader = regexp.MustCompile(`^(?:[sS][vV][cC]\.[tT][oO][kK][eE][nN]|[bB][eE][aA][rR][eE][rR]) ([A-Za-z0-9._-]{43,255})$`)

// referenceToken is the oracle of the headers with a token.
func referenceToken(authorization, authentication []string) (token string, present, ambiguous bool) {
	lines := slices.Concat(authorization, authentication)
	if len(authorization) > 1 || len(authentication) > 1 || slices.ContainsFunc(lines, func(s string) bool { return strings.Contains(s, ",") }) {
		return "", false, true
	}
	var tokens []string
	for _, line := range lines {
		if m := tokenHeader.FindStringSubmatch(line); m != nil {
			tokens = append(tokens, m[1])
		}
	}
	switch {
	case len(tokens) < len(lines) || len(tokens) == 0:
		return "", len(lines) > 0, false
	case tokens[0] != tokens[len(tokens)-1]:
		return "", false, true
	}
	return tokens[0], true, false
}

func FuzzTokenHeaders(f *testing.F) {
	for _, seed := range []string{
		"", "svc.token " + tokenSeed, "Bearer " + tokenSeed, "SVC.TOKEN " + tokenSeed, "svc.token  " + tokenSeed, "svc.token\t" + tokenSeed,
		"svc.token " + tokenSeed + ",svc.token " + tokenOther, "Basic YTpi", "svc.token " + tokenSeed[:42], "svc.token", tokenSeed, "svc.token " + tokenSeed + " x", "svc.token " + tokenSeed[:50] + "+", "svc.token " + tokenSeed + "\x00", "ſvc.token " + tokenSeed,
	} {
		f.Add(seed, seed, uint8(1), uint8(0))
		f.Add(seed, "Bearer "+tokenSeed, uint8(1), uint8(1))
		f.Add(seed, seed, uint8(0), uint8(2))
	}
	f.Fuzz(func(t *testing.T, first, second string, n, m uint8) {
		authorization := slices.Repeat([]string{first}, int(n%3))
		authentication := slices.Repeat([]string{second}, int(m%3))
		c, err := parse.ReadCredentials(http.Header{"Authorization": authorization, "Authentication": authentication, "Cookie": {"session=" + sessionSeed}}, "session")
		want, present, ambiguous := referenceToken(authorization, authentication)
		require.Equal(t, ambiguous, errors.Is(err, failure.ErrInvalid), "%q %q: got %v", authorization, authentication, err)
		if !present && !ambiguous {
			want = sessionSeed // nothing stood there that could be meant
		}
		_, got, _ := c.Pick(identity.Token | identity.Session)
		assert.Equal(t, want, got, "%q %q", authorization, authentication)
	})
}

func FuzzCookie(f *testing.F) {
	for _, seed := range []string{
		"", "session=" + sessionSeed, "a=b; session=" + sessionSeed, "session=" + sessionSeed + "; session=x", "session", "session=", "session =x",
		`session="` + sessionSeed + `"`, "session= " + sessionSeed, ";;;", "=", "session==", "\tsession=" + sessionSeed + "\t;", "Session=" + sessionSeed, "a=b; sessions=x; session =" + sessionSeed,
	} {
		f.Add(seed, "")
		f.Add(seed, seed)
		f.Add(seed, "session="+sessionSeed)
	}
	shape := regexp.MustCompile(`^[A-Za-z0-9._-]{43,255}$`)
	f.Fuzz(func(t *testing.T, first, second string) {
		lines := []string{first, second}
		session, present, err := parse.Session(lines, "session")
		var values []string
		for _, pair := range strings.Split(first+";"+second, ";") {
			name, value, ok := strings.Cut(pair, "=")
			if ok && strings.Trim(name, " \t") == "session" {
				values = append(values, strings.Trim(value, " \t"))
			}
		}
		switch {
		case len(values) > 1:
			assert.ErrorIs(t, err, failure.ErrInvalid, "%v %v", lines, len(values))
		case err != nil || present != (len(values) == 1):
			t.Errorf("%q: got present %v, %v with %d session cookies", lines, present, err, len(values))
		case len(values) == 1 && shape.MatchString(values[0]) && session != values[0], len(values) == 1 && !shape.MatchString(values[0]) && session != "":
			t.Errorf("%q: got %q", lines, session)
		}
		// Whatever the standard library finds to be a session, we must not take for
		// another. It leaves the white space behind the equals sign, which RFC 6265,
		// section 5.2, takes away; and it takes "session" without one for a name
		// with an empty value, where section 5.2 has no name. It passes over line
		// ends as over blanks; no header has them.
		if strings.ContainsAny(first+second, "\r\n") {
			return
		}
		for _, std := range (&http.Request{Header: http.Header{"Cookie": lines}}).CookiesNamed("session") {
			assert.False(t, session != "" && std.Value != "" && strings.TrimLeft(std.Value, " \t") != session, "%q: got %q, net/http reads %q", lines, session, std.Value)
		}
	})
}

func FuzzIdempotencyKey(f *testing.F) {
	for _, seed := range []string{"", "k", `"k"`, `"a\"b\\c"`, `"`, `""`, `"k"x`, `"k\"`, "a b", "ü", strings.Repeat("k", 256)} {
		f.Add(seed)
	}
	quoted := regexp.MustCompile(`^"(?:[!#-\[\]-~]|\\["\\])*"$`)
	bare := regexp.MustCompile(`^[!#-~][!-~]*$`)
	f.Fuzz(func(t *testing.T, line string) {
		got, err := parse.IdempotencyKey([]string{line})
		want := ""
		switch {
		case quoted.MatchString(line):
			want = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(line[1 : len(line)-1])
		case bare.MatchString(line):
			want = line
		}
		if len(want) > 255 {
			want = ""
		}
		assert.True(t, got == want && (err == nil) == (want != ""), "%q: got %q, %v; want %q", line, got, err, want)
	})
}

// FuzzIfMatch holds gateway/INTERFACE.md, "Concurrent editing", and RFC 9110, 13.1.1. A
// line feed separates the lines of the header, which are one list.
func FuzzIfMatch(f *testing.F) {
	for _, seed := range []string{
		"*", "*\n*", `"7", *`, `"1"`, `W/"1"`, `w/"1"`, `W/"7", "8"`, `"7", "8" ,"9"`, "\"7\"\n\"8\"", "\"\n\xd7\"", `,"7",, "8",`, `,"1",,`, ", ,", `"1" "2"`, `"`, `"7`, "1", "", `""`, `"0"`,
		`"01"`, `"+7"`, `"0x7"`, `"7 "`, `"abc"`, `"a b"`, `"a,b"`, `"18446744073709551615"`, `"18446744073709551616"`, `"7-gzip"`, `"-gzip", W/"7-gzip", "7-gzip-gzip"`,
		strings.Repeat(`"7",`, entityTagsMax), strings.Repeat(`"7",`, entityTagsMax+1),
	} {
		f.Add(seed)
	}
	list := regexp.MustCompile(`^[ \t,]*(?:(?:W/)?"[!#-~\x80-\xff]*"[ \t]*(?:,[ \t,]*|$))+$`)
	strong := regexp.MustCompile(`(W/)?"([!#-~\x80-\xff]*)"`)
	number := regexp.MustCompile(`^([1-9][0-9]*)(?:-gzip)?$`)
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Split(text, "\n")
		got, err := parse.IfMatch(lines)
		if text == "*" {
			assert.True(t, got == nil && err == nil, "*: got %v, %v, want any", got, err)
			return
		}
		for _, line := range lines {
			if strings.Count(line, `"`)%2 == 0 {
				continue
			}
			require.Error(t, err, "%q: got %v, want an error: a tag does not go on in the next line", text, got)
			return
		}
		// NB: the oracle reads bytes; as Latin-1 each is one character.
		latin := []rune{}
		for _, b := range []byte(strings.Join(lines, ",")) {
			latin = append(latin, rune(b))
		}
		tags := strong.FindAllStringSubmatch(string(latin), -1)
		ok := list.MatchString(string(latin)) && len(tags) <= entityTagsMax
		require.Equal(t, ok, err == nil, "%q: got %v, %v; want ok", text, got, err)
		if err != nil {
			return
		}
		var want []uint64
		for _, tag := range tags {
			m := number.FindStringSubmatch(tag[2])
			if m == nil || tag[1] != "" {
				continue
			}
			if n, err := strconv.ParseUint(m[1], 10, 64); err == nil {
				want = append(want, n)
			}
		}
		if len(want) == 0 {
			want = []uint64{0} // which is no sequence number
		}
		assert.True(t, slices.Equal(got, want), "%q: got %v, want %v", text, got, want)
	})
}

func FuzzPrefer(f *testing.F) {
	for _, seed := range []string{"return=minimal", `foo="a,b", return=minimal`, `return="minimal"`, `"`, `a="\"`, ",;=", "return"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got := parse.PrefersMinimal([]string{line})
		assert.False(t, got && !strings.Contains(line, "minimal"), "%q: got a wish that is not there", line)
		assert.False(t, !strings.ContainsAny(line, `",`) && regexp.MustCompile(`(?i)^[ \t]*return[ \t]*=[ \t]*(?-i:minimal)[ \t]*(;.*)?$`).MatchString(line) && !got, "%q: the wish was not heard", line)
		// A list is what its lines are.
		before, after, found := strings.Cut(line, ",")
		assert.False(t, found && !strings.Contains(line, `"`) && parse.PrefersMinimal([]string{before, after}) != got, "%q: two lines mean something else", line)
	})
}

func FuzzContentType(f *testing.F) {
	for _, seed := range []string{"application/json", "application/json; charset=utf-8", "application/json;charset=\"utf-8\"", "text/json", ";", "application/json;charset=utf-16"} {
		f.Add(seed)
	}
	simple := regexp.MustCompile(`(?i)^application/json[ \t]*(;[ \t]*charset=("utf-8"|utf-8)[ \t]*)?;?[ \t]*$`)
	f.Fuzz(func(t *testing.T, line string) {
		err := parse.CheckContentType(http.Header{"Content-Type": {line}}, "application/json", parse.HeaderRequired)
		assert.False(t, err == nil && !strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "application/json"), "%q passed", line)
		assert.False(t, err != nil && !errors.Is(err, failure.ErrMediaType), "%q: got %v", line, err)
		assert.False(t, err != nil && simple.MatchString(line) && !strings.ContainsFunc(line, func(r rune) bool { return r > '~' }), "%q was refused", line)
	})
}

// TestCredentials: never another kind than the route takes, never a fall back from a token that stands there.
func TestCredentials(t *testing.T) {
	for authorization, token := range map[string]string{"": "", "Basic YTpi": "", "Bearer " + tokenSeed: tokenSeed} {
		for cookie, session := range map[string]string{"": "", "session=x": "", "session=" + sessionSeed: sessionSeed} {
			h := http.Header{"Cookie": {cookie}}
			if authorization != "" {
				h.Set("Authorization", authorization)
			}
			c, err := parse.ReadCredentials(h, "session")
			require.NoError(t, err)
			for kinds, want := range map[identity.Kind]string{identity.Token: token, identity.Session: session, identity.Token | identity.Session: token} {
				if authorization == "" && kinds&identity.Session != 0 {
					want = session
				}
				kind, text, err := c.Pick(kinds)
				assert.True(t, text == want && (err == nil) == (text != "") && (kind == 0) == (text == "") && kind&kinds == kind,
					"%q and %q on a route that takes %d: got kind %d and %q, %v; want %q", authorization, cookie, kinds, kind, text, err, want)
			}
		}
	}
}

// FuzzNextLink holds that the Link leads back to the same parameters, and that
// nothing in it ends the reference or the header.
func FuzzNextLink(f *testing.F) {
	f.Add("{}", "1", "c1")
	f.Add("<>\",;\r\n", "+ %", "a&b=c#d")
	f.Add("\xff\x00", "ü", "\u2028")
	link := regexp.MustCompile(`^<(/base/instances/leave\?[!-~]*)>; rel="next"$`)
	f.Fuzz(func(t *testing.T, filter, sort, cursor string) {
		query := url.Values{"filter": {filter}, "sort": {sort}, "cursor": {"old"}}
		got := parse.NextLink("/base/instances/leave", []string{"filter", "limit", "cursor", "sort"}, query, cursor)
		parts := link.FindStringSubmatch(got)
		require.True(t, parts != nil && !strings.ContainsAny(parts[1], `<>",;`), "got %q", got)
		reference, err := url.Parse(parts[1])
		require.NoError(t, err, got)
		back, err := url.ParseQuery(reference.RawQuery)
		want := url.Values{"filter": {filter}, "sort": {sort}, "cursor": {cursor}}
		assert.True(t, err == nil && back.Encode() == want.Encode() && reference.Fragment == "", "%q leads to %v (%v), want %v", got, back, err, want)
	})
}

func FuzzLastEventID(f *testing.F) {
	for _, seed := range []string{"", "e.7", "a b", "ü", strings.Repeat("x", lastEventIDCharsMax), strings.Repeat("x", lastEventIDCharsMax+1), "\x7f"} {
		f.Add(seed)
	}
	shape := regexp.MustCompile(`^[!-~]*$`)
	f.Fuzz(func(t *testing.T, line string) {
		got, err := parse.LastEventID([]string{line})
		ok := shape.MatchString(line) && len(line) <= lastEventIDCharsMax
		assert.True(t, (err == nil) == ok && (!ok || got == line), "%q: got %q, %v", line, got, err)
	})
}
