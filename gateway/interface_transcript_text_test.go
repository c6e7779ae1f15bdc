package gateway_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
)

var (
	requestLine = regexp.MustCompile(`^(?:([a-z][^=]*) = )?([A-Za-z]+) ((?:«[^»]*»|\S)+)(?: (.*))?$`)
	variable    = regexp.MustCompile(`\$([a-z]\w*(?:\.[a-z]+)?)(?:\[(\d*):(\d*)\])?`)
	repeated    = regexp.MustCompile("<<(\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`)(?:\\*(\\d+))?>>")
	padded      = regexp.MustCompile(`<<to (\d+)>>`)
	escaped     = regexp.MustCompile(`«([^»]*)»`)
	aTime       = regexp.MustCompile(`\b2026-\d\d-\d\dT[0-9:.]+Z`)
	aMoment     = regexp.MustCompile(`\b1[5-9]\d{11}\b`)
	changing    = []struct {
		what *regexp.Regexp
		name string
	}{
		{regexp.MustCompile(`\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b`), "<id>"},
		{regexp.MustCompile(`\b(ses|tok)_\w+\.[\w-]+`), "<$1>"},
		{regexp.MustCompile(`"A[\w-]{18,}"`), `"<cursor>"`},
		{regexp.MustCompile(`("next":"|cursor=)[\w%-]{16,}`), "$1<cursor>"},
	}
)

// expand puts values in place of names: $NAME and $NAME[from:to], $token.USER, $session.USER and $lower.NAME; <<"text"*3>> is the
// text three times, as Go writes it; <<to 5>> are blanks up to that length; and «text» is escaped for a query.
func (s *transcript) expand(t *testing.T, text string) string {
	text = variable.ReplaceAllStringFunc(text, func(found string) string {
		parts := variable.FindStringSubmatch(found)
		value := s.value(t, parts[1])
		if value == "" && parts[1] != "x" { // of a filter, or a schema
			return found
		}
		from, _ := strconv.Atoi(parts[2])
		to, _ := strconv.Atoi(cmp.Or(parts[3], strconv.Itoa(len(value))))
		return value[from:to]
	})
	text = repeated.ReplaceAllStringFunc(text, func(found string) string {
		parts := repeated.FindStringSubmatch(found)
		unit, err := strconv.Unquote(parts[1])
		require.NoError(t, err)
		n, _ := strconv.Atoi(cmp.Or(parts[2], "1"))
		return strings.Repeat(unit, n)
	})
	if strings.Contains(text, "«") {
		text = escaped.ReplaceAllStringFunc(text, func(found string) string { return url.QueryEscape(strings.Trim(found, "«»")) })
	}
	if before, _, ok := strings.Cut(text, "<<to "); ok {
		parts := padded.FindStringSubmatch(text[len(before):])
		n, _ := strconv.Atoi(parts[1])
		text = strings.Replace(text, parts[0], strings.Repeat(" ", n-len(text)+len(parts[0])), 1)
	}
	return text
}

// value is that of a name, "" for none.
func (s *transcript) value(t *testing.T, name string) string {
	t.Helper()
	kind, user, _ := strings.Cut(name, ".")
	if s.values[name] == "" && user != "" {
		switch kind {
		case "token":
			s.values[name] = s.Token(identity.UserID(user))
		case "lower":
			return strings.ToLower(s.value(t, user))
		case "session":
			s.values[name] = s.Session(identity.UserID(user))
		}
	}
	return s.values[name]
}

// masked has names in place of what is different in each run, and of times.
func (s *transcript) masked(text string) string { return timeless(s.named(text)) }

func (s *transcript) named(text string) string {
	names := slices.SortedFunc(maps.Keys(s.values), func(a, b string) int {
		return cmp.Or(len(s.values[b])-len(s.values[a]), strings.Compare(a, b))
	})
	for _, name := range names {
		if value := s.values[name]; len(value) >= 10 && name != "x" && !strings.HasSuffix(name, ".record") {
			text = strings.ReplaceAll(text, value, "$"+name)
		}
	}
	for _, c := range changing {
		text = c.what.ReplaceAllString(text, c.name)
	}
	return text
}

func timeless(text string) string {
	return aMoment.ReplaceAllString(aTime.ReplaceAllString(text, "<time>"), "<ms>")
}

// shown is an answer in one line, or what is selected of it.
func shown(a answer, show []string) string {
	if len(show) == 0 {
		show = []string{"text"}
	} else if a.Status >= 400 && a.Label() != "" {
		show = slices.DeleteFunc(slices.Clone(show), func(where string) bool { return where[0] < 'A' || where[0] > 'Z' || a.Header.Get(where) == "" })
		show = append(show, "text")
	}
	line := strconv.Itoa(a.Status)
	if len(show) == 1 && show[0] == "status" {
		return line
	}
	for _, where := range show {
		line += " " + selected(a, where)
	}
	return strings.TrimSpace(line)
}

// selected is what an answer has there: a header, "text" for all, "session" for the cookie, "id" for an instance,
// "/…/" for all that the expression finds, "#/…/" for how many that are, else members as of pick. "-" is nothing.
func selected(a answer, where string) string {
	var members map[string]json.RawMessage
	switch {
	case where == "text":
		if a.Label() != "" && json.Unmarshal([]byte(a.Body), &members) == nil && len(members) == 2 {
			return a.Label() + ": " + a.Message()
		}
		return strings.TrimSpace(a.Body)
	case where == "session":
		return strings.Join(regexp.MustCompile(`\w+\.[\w-]+`).FindAllString(a.Header.Get("Set-Cookie"), 1), " ")
	case where == "id" && !strings.HasPrefix(a.Body, "{"):
		return a.Body // of a form
	case where == "id":
		return pick(a.Body, "instanceId")
	case where[0] == '#' && len(where) > 1:
		return strconv.Itoa(len(regexp.MustCompile(strings.Trim(where[1:], "/")).FindAllString(a.Body, -1)))
	case where[0] == '/':
		return cmp.Or(strings.Join(regexp.MustCompile(strings.Trim(where, "/")).FindAllString(a.Body, -1), " "), "-")
	case where[0] >= 'A' && where[0] <= 'Z':
		return cmp.Or(strings.Join(a.Header.Values(where), ", "), "-")
	}
	return pick(a.Body, where)
}

// pick is what a JSON text has at a place: members and indexes with dots between them, * for all items, ~ for
// all in their order, # for their number.
func pick(text, where string) string {
	step, rest, _ := strings.Cut(where, ".")
	if step == "" {
		var b bytes.Buffer
		_ = json.Compact(&b, []byte(text)) // it was decoded before
		return b.String()
	}
	var items []json.RawMessage
	if !strings.HasPrefix(text, "[") || json.Unmarshal([]byte(text), &items) != nil {
		var members map[string]json.RawMessage
		if _ = json.Unmarshal([]byte(text), &members); members[step] == nil {
			return "-"
		}
		return pick(string(members[step]), rest)
	}
	switch n, err := strconv.Atoi(step); {
	case step == "#":
		return strconv.Itoa(len(items))
	case step == "*", step == "~":
		var all []string
		for _, item := range items {
			all = append(all, pick(string(item), rest))
		}
		if step == "~" {
			slices.Sort(all)
		}
		return "[" + strings.Join(all, ",") + "]"
	case err == nil && n < len(items) && n >= -len(items):
		return pick(string(items[(n+len(items))%len(items)]), rest)
	}
	return "-"
}

// collapsed has lines that repeat themselves once.
func collapsed(lines []string) string {
	var b strings.Builder
	for i := 0; i < len(lines); {
		n := 1
		for i+n < len(lines) && lines[i+n] == lines[i] {
			n++
		}
		b.WriteString(lines[i])
		if n > 1 {
			fmt.Fprintf(&b, " (%d times)", n)
		}
		b.WriteByte('\n')
		i += n
	}
	return b.String()
}
