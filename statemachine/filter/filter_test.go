package filter

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/cputest"
	"troupe/statemachine/data"
)

func mustParse(t testing.TB, src string) *Filter {
	t.Helper()
	f, err := Parse([]byte(src), Options{Private: true})
	if err != nil {
		t.Fatalf("Parse(%s): %v", src, err)
	}
	return f
}

func mustClean(t testing.TB, src string) data.Value {
	t.Helper()
	v, err := data.Clean([]byte(src))
	if err != nil {
		t.Fatalf("Clean(%s): %v", src, err)
	}
	return v
}

// TestRules plays testdata/rule:
//
//	document  what "match" looks at: _id, workflowId, states, svcPublic, svcPrivate, svcHistory
//	match     one filter a line, or the empty one
//	rule      a filter, and svcPublic; with ended=N nobody waits any more when the match asks for the nth time
//	parse     a filter of a caller: taken, or why not
//	plan      what a filter tells the planner
//	field     paths of indexes
//	keys      of a path, the keys of svcPublic
//	bounds    of a filter, those on a path; "one key" where every instance has one
func TestRules(t *testing.T) {
	var d Document
	reads := 0
	datadriven.Walk(t, "testdata/rule", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, cmd *datadriven.TestData) string {
			text := expand(cmd.Input)
			first, second, _ := strings.Cut(text, "\n")
			var out strings.Builder
			switch cmd.Cmd {
			case "document":
				of := func(name string) data.Value { v, _ := mustClean(t, text).Lookup(name); return v }
				d = Document{ID: of("_id").Text(), WorkflowID: of("workflowId").Text(), Key: of("key").Text(), States: of("states"), Public: of("svcPublic"), Private: of("svcPrivate")}
				d.History = func() data.Value { reads++; return of("svcHistory") }
				return "ok"
			case "match":
				for filter := range strings.SplitSeq(text, "\n") {
					reads = 0
					fmt.Fprintf(&out, "%s %s", yes(mustParse(t, filter).Match(d)), filter)
					if reads > 0 {
						fmt.Fprintf(&out, " (history read %d time)", reads)
					}
					out.WriteString("\n")
				}
			case "rule":
				f, d, asked, end := mustParse(t, first), Document{Public: mustClean(t, second)}, 0, 0
				if cmd.MaybeScanArgs(t, "ended", &end); end > 0 {
					d.Ended = func() bool { asked++; return asked == end }
				}
				watched, field := cputest.Watch(), mustField(t, "svcPublic.a")
				answer := yes(f.Match(d))
				assert.LessOrEqual(t, watched(), 5*time.Second, "%s: took", cmd.Pos)
				field.Keys(d)
				f.Bounds(field, false)
				f.Bounds(field, true)
				if end > 0 {
					return fmt.Sprintf("%s, asked %d times whether it has ended", answer, asked)
				}
				return answer
			case "parse":
				f, err := Parse([]byte(text), Options{})
				if err == nil {
					return "taken"
				}
				assert.True(t, f == nil && len(err.Error()) <= 200, "%s", err)
				return kindOf(t, err) + ": " + err.Error()
			case "plan":
				f := mustParse(t, text)
				if ids, ok := f.IDs(); ok {
					fmt.Fprintf(&out, "ids %q\n", ids)
				}
				for _, p := range f.Positions() {
					fmt.Fprintf(&out, "at %q of %q\n", p.Nodes, p.Machine)
				}
				fmt.Fprintf(&out, "history: %s\n", yes(f.UsesHistory()))
			case "field":
				for path := range strings.SplitSeq(text, "\n") {
					if f, err := ParseField(strings.Split(path, ".")); err != nil {
						fmt.Fprintf(&out, "%.40q: %s: %s\n", path, kindOf(t, err), err)
					} else {
						fmt.Fprintf(&out, "%q: private: %s\n", f.Path(), yes(f.Private()))
					}
				}
			case "keys":
				for _, k := range mustField(t, first).Keys(Document{Public: mustClean(t, second), Private: data.Value(`{"a":"secret"}`)}) {
					assert.LessOrEqual(t, len(k), KeyBytesMax, "a key")
					out.WriteString(named(k, second+`"secret"`) + "\n")
				}
			case "bounds":
				ranges, ok := mustParse(t, first).Bounds(mustField(t, second), cmd.HasArg("one"))
				if !ok {
					return "nothing is said"
				}
				last := len(ranges) - 1
				require.True(t, ranges[last].Point && bytes.Equal(ranges[last].From, OverflowKey), "the last is not OverflowKey")
				for _, r := range ranges[:last] {
					if out.WriteString(named(r.From, first)); !r.Point {
						out.WriteString(" to " + named(r.To, first))
					}
					out.WriteString("\n")
				}
				return cmp.Or(out.String(), "no key")
			}
			return out.String()
		})
	})
}

func yes(is bool) string { return map[bool]string{true: "yes", false: "no"}[is] }

func kindOf(t *testing.T, err error) string {
	for name, kind := range map[string]error{"syntax": ErrSyntax, "unsupported": ErrUnsupported, "root": ErrRoot, "too large": ErrTooLarge} {
		if errors.Is(err, kind) {
			return name
		}
	}
	t.Fatalf("an error of no known kind: %v", err)
	return ""
}

var (
	repeated = regexp.MustCompile(`⟨(.*?)⟩\{(\d+)\}`)
	scalar   = regexp.MustCompile(`"([^"\\]|\\.)*"|-?\d[\d.e+-]*|true|false|null`)
)

// expand writes out each ⟨text⟩{n}, n times the text, with # as the number of the time.
func expand(text string) string {
	return repeated.ReplaceAllStringFunc(text, func(part string) string {
		m, all := repeated.FindStringSubmatch(part), strings.Builder{}
		n, _ := strconv.Atoi(m[2])
		if !strings.Contains(m[1], "#") {
			return strings.Repeat(m[1], n)
		}
		for i := range n {
			all.WriteString(strings.ReplaceAll(m[1], "#", strconv.Itoa(i)))
		}
		return all.String()
	})
}

// named writes a key as the value in a text that has it, or as a kind of values; others are quoted.
func named(k []byte, text string) string {
	for kind, of := range map[string]string{"number": "1", "text": `""`, "bool": "true", "array": "[]", "object": "{}"} {
		if first := data.AppendOrdered(nil, data.Value(of))[0]; len(k) == 1 && k[0] == first {
			return "first " + kind
		} else if len(k) == 1 && k[0] == first+1 {
			return "last " + kind
		}
	}
	values := append(scalar.FindAllString(text, -1), "", "null")
	for i := range text { // lists and objects, too
		for j := i + 1; j <= len(text) && strings.ContainsRune("[{", rune(text[i])) && len(text) < 100; j++ {
			if v, err := data.Clean([]byte(text[i:j])); err == nil {
				values = append(values, string(v))
			}
		}
	}
	for _, v := range values {
		key := data.AppendOrdered(nil, data.Value(v))
		name := cmp.Or(v, "missing")
		if len(name) > 80 {
			name = name[:5] + "… (cut)"
		}
		switch {
		case bytes.Equal(k, cut(key)):
			return name
		case bytes.Equal(k, behind(key)), bytes.Equal(k, behind(cut(key))):
			return "after " + name
		}
	}
	if len(k) > 40 {
		return fmt.Sprintf("%.10q…%q of %d bytes", k, k[len(k)-1:], len(k))
	}
	return strconv.Quote(string(k))
}

func TestMatchAllocatesNothing(t *testing.T) {
	d := instance(t)
	history := mustClean(t, `[{"user":"anna"}]`)
	d.History = func() data.Value { return history }
	for _, filter := range []string{
		`{"states.nodeId":"review","svcPublic.lines.sku":"A-0003","svcPublic.customer.city":"K\u00f6ln","workflowId":"invoice-approval"}`,
		`{"states":{"$elemMatch":{"stateMachineId":"main","nodeId":{"$in":["review","done"]}}}}`,
		`{"svcPublic.amount":{"$gte":1000,"$lt":2e3},"svcPublic.due":{"$lte":"2026-12-31"},"svcPublic.currency":{"$exists":false}}`,
		`{"$or":[{"svcPublic.amount":{"$in":[1,2]}},{"svcPublic.requester":{"$nin":["bert",null]}}],"$nor":[{"_id":{"$gt":"02"}},{"_id":{"$in":["1","2"]}}]}`,
		`{"svcPublic.lines.quantity":{"$all":[1,2]},"svcPublic.lines":{"$size":6},"svcPublic.lines.price":{"$type":"double","$not":{"$gt":1e3}}}`,
		`{"svcPublic.amount":{"$mod":[1830,0],"$bitsAllClear":0,"$ne":7},"svcPublic.customer":{"$lt":[1]}}`,
		`{"svcHistory.user":"anna","svcPrivate.autoLimit":1000}`,
		`{"svcPublic.requester":{"$regex":"^anna\\."}}`,
	} {
		f := mustParse(t, filter)
		f.Match(d)
		assert.Zero(t, testing.AllocsPerRun(100, func() { f.Match(d) }), "%s: a match allocates", filter)
	}
	f := mustParse(t, `{"svcPublic.customer.city":{"$regex":"^K.ln$"}}`)
	assert.True(t, f.Match(d) && f.Match(Document{Public: data.Value(`{"customer":{"city":"K\u00f6ln"}}`)}))
}

func instance(t testing.TB) Document {
	var lines []string
	for i := range 6 {
		lines = append(lines, fmt.Sprintf(`{"sku":"A-%04d","quantity":%d,"price":%d.50,"note":"deliver to the back door, ring twice"}`, i, i+1, i))
	}
	return Document{
		ID: "01JD3V0000000000000000000A", WorkflowID: "invoice-approval",
		States:  mustClean(t, `[{"stateMachineId":"main","nodeId":"review"},{"stateMachineId":"payment","nodeId":"unpaid"}]`),
		Public:  mustClean(t, `{"customerId":"c-81726","requester":"anna.schmidt","amount":1830.75,"customer":{"street":"Domplatz 1","city":"Köln"},"lines":[`+strings.Join(lines, ",")+`],"due":"2026-12-24"}`),
		Private: mustClean(t, `{"autoLimit":1000}`),
	}
}

func keysOf(values ...string) [][]byte {
	keys := make([][]byte, 0, len(values))
	for _, v := range values {
		keys = append(keys, data.AppendOrderedPrefix(nil, data.Value(v), KeyBytesMax))
	}
	return keys
}

func TestKeysOverflow(t *testing.T) {
	array := func(n int) Document {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ",%d", i)
		}
		return Document{Public: data.Value(`{"a":[` + b.String()[1:] + `]}`)}
	}
	field := mustField(t, "svcPublic.a")
	assert.Len(t, field.Keys(array(KeysMax-1)), KeysMax, "an array of %d elements", KeysMax-1)
	d := array(KeysMax)
	got := field.Keys(d)
	require.True(t, len(got) == 3 && bytes.Equal(got[0], keysOf(`0`)[0]) && got[1][0] == keysOf(`[]`)[0][0] && bytes.Equal(got[2], OverflowKey), got)
	// NB: none of the three is the key of 500.
	for _, filter := range []string{`{"svcPublic.a":500}`, `{"svcPublic.a":{"$gt":998}}`, `{"svcPublic.a":{"$elemMatch":{"$gt":500,"$lt":502}}}`} {
		f := mustParse(t, filter)
		require.True(t, f.Match(d), "%s does not match, want it to", filter)
		fault, used := indexFault(f, field, got)
		assert.True(t, fault == "" && used, "%s: %s (uses the index: %v), want it found", filter, fault, used)
	}
	for _, v := range []string{``, `null`, `1e99999999999999999`, `"\udbff\udfff"`, `[true]`, `true`} {
		k := keysOf(v)[0]
		assert.True(t, bytes.Compare(k, OverflowKey) < 0 && !bytes.HasPrefix(k, OverflowKey), "the key %x of %s is not in front of OverflowKey", k, v)
	}
}

func TestParseKeepsNothingOfItsInput(t *testing.T) {
	src := []byte(`{"svcPublic.a":"x"}`)
	f, err := Parse(src, Options{})
	require.NoError(t, err)
	clear(src)
	assert.True(t, f.Match(Document{Public: data.Value(`{"a":"x"}`)}), "after its text is overwritten the filter does not match, want it to")
	assert.True(t, (&Filter{}).Match(instance(t)), "the zero filter")
	_, err = Parse([]byte("{\"_id\":\"\xff\"}"), Options{})
	require.ErrorIs(t, err, ErrSyntax)
	_, err = Parse([]byte(" \n{}\n"), Options{})
	require.NoError(t, err)
	_, err = ParseField(nil)
	assert.ErrorIs(t, err, ErrRoot)
}

// TestALongTextIsReadLikeAShortOne: rune by rune nothing is found that would not be found otherwise, and the other way round.
func TestALongTextIsReadLikeAShortOne(t *testing.T) {
	fill := strings.Repeat("ü-x ", 4_000)
	for _, pattern := range []string{
		"^ü", "^x", "y$", "x y$", "\\by\\b", "\\bü", "needle", "(?i)NEEDLE", "x{3}", "needle y$", "^.*y$", "[^ -~ü]", "(x|ü)+y", "\\Ay", "y\\z", "^$", "",
	} {
		for _, text := range []string{fill, fill + "y", "y" + fill, fill + "needle" + fill, fill + "needle y", fill + "\\u00e4" + fill, fill + "\\n"} {
			// The second expression only makes it long.
			f := mustParse(t, `{"svcPublic.a":{"$regex":`+string(data.AppendString(nil, pattern+"|[q]{200}Q"))+`}}`)
			d := Document{Public: mustClean(t, `{"a":"`+text+`"}`)}
			want, asked := f.Match(d), 0
			d.Ended = func() bool { asked++; return false }
			if got := f.Match(d); got != want {
				t.Errorf("%q in %.20q…%.20q: %v, want %v", pattern, text, text[len(text)-20:], got, want)
			}
			assert.NotZero(t, asked, "%q: not asked whether it has ended", pattern)
		}
	}
}

// TestOtherBytes: what is no Value gets nonsense, but no panic.
func TestOtherBytes(t *testing.T) {
	filters := []string{
		`{"svcPublic.a":1}`, `{"svcPublic.a.0.b":{"$gt":"x","$in":[1,null]}}`, `{"svcPublic":{"$elemMatch":{"0.a":1}}}`,
		`{"svcPublic.a":{"$regex":"x","$type":"int","$size":1,"$mod":[2,0],"$bitsAnySet":1}}`,
	}
	for _, s := range []string{`{"a"`, `{"a":`, `{"a":[`, `{"a":"`, `{"a":-`, `[[[`, `[{"0":`, `]`, `:`, "\xff", `{"a":"\`, strings.Repeat("[", 100_000)} {
		d := Document{Public: data.Value(s), States: data.Value(s), Private: data.Value(s)}
		for _, filter := range filters {
			mustParse(t, filter).Match(d)
		}
		mustField(t, "svcPublic.a.0").Keys(d)
	}
}
