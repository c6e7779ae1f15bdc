package filter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

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

// TestRules runs the rules on svcPublic. Where an example is from the
// specification of the filter, the path has svcPublic in front of it.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name, filter, public string
		want                 bool
	}{
		// Rule 1: how a path is followed.
		{"a member is found", `{"svcPublic.a":1}`, `{"a":1}`, true},
		{"a member of a member is found", `{"svcPublic.a.b":1}`, `{"a":{"b":1}}`, true},
		{"another value does not match", `{"svcPublic.a":1}`, `{"a":2}`, false},
		{"a missing member does not match a value", `{"svcPublic.b":1}`, `{"a":1}`, false},
		{"nothing is inside of a scalar", `{"svcPublic.a.b":1}`, `{"a":1}`, false},
		{"an array at the end matches by an element", `{"svcPublic.a":2}`, `{"a":[1,2]}`, true},
		{"an array at the end matches as a whole", `{"svcPublic.a":[1,2]}`, `{"a":[1,2]}`, true},
		{"an array at the end matches by an element that is an array", `{"svcPublic.a":[1,2]}`, `{"a":[[1,2],3]}`, true},
		{"an array at the end is taken apart once only", `{"svcPublic.a":1}`, `{"a":[[1]]}`, false},
		{"a part of an array is not the array", `{"svcPublic.a":[1]}`, `{"a":[1,2]}`, false},
		{"an empty array matches itself", `{"svcPublic.a":[]}`, `{"a":[]}`, true},
		{"an array in the middle matches by an object in it", `{"svcPublic.a.b":2}`, `{"a":[{"b":1},{"b":2}]}`, true},
		{"arrays in arrays' objects are followed", `{"svcPublic.a.b.c":3}`, `{"a":[{"b":[{"c":1},{"c":3}]}]}`, true},
		{"an array in an array is not searched", `{"svcPublic.a.b":1}`, `{"a":[[{"b":1}]]}`, false},
		{"a position takes an element", `{"svcPublic.a.1":2}`, `{"a":[1,2]}`, true},
		{"a position does not take another element", `{"svcPublic.a.0":2}`, `{"a":[1,2]}`, false},
		{"a position leads on into an object", `{"svcPublic.a.1.b":2}`, `{"a":[{"b":1},{"b":2}]}`, true},
		{"a position leads on into an array", `{"svcPublic.a.1.0":8}`, `{"a":[[6,7],[8,9]]}`, true},
		{"a position leads on into an array of objects", `{"svcPublic.a.0.b":1}`, `{"a":[[{"b":1}]]}`, true},
		{"an element taken by its position is not taken apart: {\"a.1\":8} does not match {a:[[6,7],[8,9]]}", `{"svcPublic.a.1":8}`, `{"a":[[6,7],[8,9]]}`, false},
		{"an element taken by its position matches as a whole", `{"svcPublic.a.1":[8,9]}`, `{"a":[[6,7],[8,9]]}`, true},
		{"digits are a key as well", `{"svcPublic.a.0":1}`, `{"a":{"0":1}}`, true},
		{"digits are a key in an element, too", `{"svcPublic.a.0":1}`, `{"a":[5,{"0":1}]}`, true},
		{"a position has no leading zero", `{"svcPublic.a.01":2}`, `{"a":[1,2]}`, false},
		{"a position behind the end gives nothing", `{"svcPublic.a.2":null}`, `{"a":[1,2]}`, false},
		{"a stored key with a dot is not found by a path", `{"svcPublic.a.b":1}`, `{"a.b":1}`, false},
		{"a key that a stored value spells with escapes is found", `{"svcPublic.a":1}`, `{"\u0061":1}`, true},
		{"a key that the filter spells with escapes is found", `{"svcPublic.\u0061":1}`, `{"a":1}`, true},
		{"__proto__ is a key like others", `{"svcPublic.__proto__.x":1}`, `{"a":1}`, false},

		// Rule 2: null.
		{"null matches null", `{"svcPublic.a":null}`, `{"a":null}`, true},
		{"null matches missing", `{"svcPublic.a":null}`, `{}`, true},
		{"null matches what would be inside of a scalar", `{"svcPublic.a.b":null}`, `{"a":1}`, true},
		{"null does not match a value", `{"svcPublic.a":null}`, `{"a":0}`, false},
		{"null does not match an empty array", `{"svcPublic.a":null}`, `{"a":[]}`, false},
		{"null matches an element", `{"svcPublic.a":null}`, `{"a":[1,null]}`, true},
		{"null matches what an object in an array misses", `{"svcPublic.a.b":null}`, `{"a":[{"b":1},{"c":1}]}`, true},
		{"a scalar in an array gives nothing, not missing: {\"a.b\":null} does not match {a:[1]}", `{"svcPublic.a.b":null}`, `{"a":[1]}`, false},
		{"an empty array in the middle gives nothing", `{"svcPublic.a.b":null}`, `{"a":[]}`, false},
		{"a nested array in the middle gives nothing", `{"svcPublic.a.b":null}`, `{"a":[[]]}`, false},
		{"a scalar at a position gives nothing: {\"a.0.b\":null} does not match {a:[5]}", `{"svcPublic.a.0.b":null}`, `{"a":[5]}`, false},
		{"an object at a position that misses the rest gives missing", `{"svcPublic.a.0.b":null}`, `{"a":[{"c":1}]}`, true},
		{"null inside of a value is only null", `{"svcPublic.a":{"b":null}}`, `{"a":{}}`, false},

		// Rule 3: kinds do not mix.
		{"a number is not its text", `{"svcPublic.a":1}`, `{"a":"1"}`, false},
		{"a number is not true", `{"svcPublic.a":1}`, `{"a":true}`, false},
		{"zero is not false", `{"svcPublic.a":0}`, `{"a":false}`, false},
		{"an empty text is not null", `{"svcPublic.a":""}`, `{"a":null}`, false},
		{"1 is 1.0", `{"svcPublic.a":1}`, `{"a":1.0}`, true},
		{"1e2 is 100", `{"svcPublic.a":1e2}`, `{"a":100}`, true},
		{"-0 is 0", `{"svcPublic.a":-0}`, `{"a":0}`, true},
		{"2^53+1 is not 2^53", `{"svcPublic.a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{"2^53+1 is itself", `{"svcPublic.a":9007199254740993}`, `{"a":9007199254740993.0}`, true},
		{"1e400 is itself", `{"svcPublic.a":1e400}`, `{"a":10e399}`, true},
		{"1e400 is not 1e401", `{"svcPublic.a":1e400}`, `{"a":1e401}`, false},
		{"true is true", `{"svcPublic.a":true}`, `{"a":true}`, true},
		{"texts are compared decoded", `{"svcPublic.a":"\u00e9"}`, `{"a":"é"}`, true},
		{"texts are not normalised", `{"svcPublic.a":"e\u0301"}`, `{"a":"é"}`, false},
		{"texts may have NUL", `{"svcPublic.a":"\u0000"}`, `{"a":"\u0000"}`, true},

		// Rule 4: objects and arrays.
		{"an object equals one with the same members in the same order", `{"svcPublic.a":{"x":1,"y":2}}`, `{"a":{"x":1,"y":2}}`, true},
		{"the order of members counts", `{"svcPublic.a":{"x":1,"y":2}}`, `{"a":{"y":2,"x":1}}`, false},
		{"an object with more members is another", `{"svcPublic.a":{"x":1}}`, `{"a":{"x":1,"y":2}}`, false},
		{"an object matches an element", `{"svcPublic.a":{"x":1}}`, `{"a":[{"x":1}]}`, true},
		{"the empty object matches itself only", `{"svcPublic.a":{}}`, `{"a":{"x":1}}`, false},
		{"the order of elements counts", `{"svcPublic.a":[2,1]}`, `{"a":[1,2]}`, false},
		{"the whole root can be compared", `{"svcPublic":{"a":1}}`, `{"a":1}`, true},
		{"$ inside of a value is a key like others", `{"svcPublic.a":{"x":{"$gt":1}}}`, `{"a":{"x":{"$gt":1}}}`, true},
		{"$ behind the first key is a key like others", `{"svcPublic.a":{"x":1,"$gt":1}}`, `{"a":{"x":1,"$gt":1}}`, true},

		{"all conditions must hold", `{"svcPublic.a":1,"svcPublic.b":2}`, `{"a":1,"b":3}`, false},
		{"two conditions may hold by different elements", `{"svcPublic.a.x":1,"svcPublic.a.y":2}`, `{"a":[{"x":1},{"y":2}]}`, true},
		{"$oid reads as its text", `{"svcPublic.a":{"$oid":"x"}}`, `{"a":"x"}`, true},
		{"$oid inside of a value reads as its text", `{"svcPublic.a":[{"b":{"$oid":"x"}}]}`, `{"a":[{"b":"x"}]}`, true},
		{"$oid may be spelled with escapes", `{"svcPublic.a":{"\u0024oid":"x"}}`, `{"a":"x"}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Document{Public: mustClean(t, c.public)}
			if got := mustParse(t, c.filter).Match(d); got != c.want {
				t.Errorf("%s matches %s: %v, want %v", c.filter, c.public, got, c.want)
			}
		})
	}
}

func TestRoots(t *testing.T) {
	d := Document{
		ID: "01JD", WorkflowID: "invoice",
		States:  mustClean(t, `[{"stateMachineId":"main","nodeId":"review"},{"stateMachineId":"payment","nodeId":"unpaid"}]`),
		Public:  mustClean(t, `{"a":1}`),
		Private: mustClean(t, `{"limit":1000}`),
		History: func() data.Value { return mustClean(t, `[{"user":"anna","endState":["draft","unpaid"]}]`) },
	}
	for _, c := range []struct {
		filter string
		want   bool
	}{
		{`{}`, true},
		{``, true},
		{`{"_id":"01JD"}`, true},
		{`{"_id":{"$oid":"01JD"}}`, true},
		{`{"_id":"01JE"}`, false},
		{`{"_id":["01JD"]}`, false},
		{`{"_id":null}`, false},
		{`{"_id.x":null}`, true},
		{`{"_id.0":"0"}`, false},
		{`{"workflowId":"invoice"}`, true},
		{`{"workflowId":"inv\u006fice"}`, true},
		{`{"workflowId":"Invoice"}`, false},
		{`{"states.nodeId":"review"}`, true},
		{`{"states.nodeId":"unpaid"}`, true},
		{`{"states.nodeId":"draft"}`, false},
		{`{"states.0.nodeId":"unpaid"}`, false},
		{`{"states.1.nodeId":"unpaid"}`, true},
		{`{"states":{"stateMachineId":"main","nodeId":"review"}}`, true},
		{`{"states":{"nodeId":"review","stateMachineId":"main"}}`, false},
		{`{"states.stateMachineId":"main","states.nodeId":"unpaid"}`, true},
		{`{"svcPrivate.limit":1000}`, true},
		{`{"svcPrivate.limit":1}`, false},
		{`{"svcHistory.user":"anna"}`, true},
		{`{"svcHistory.endState":"draft"}`, true},
		{`{"svcHistory.0.endState":["draft","unpaid"]}`, true},
		{`{"svcHistory.user":"bert"}`, false},
		{`{"svcHistory.user":"anna","svcPublic.a":1}`, true},
	} {
		if got := mustParse(t, c.filter).Match(d); got != c.want {
			t.Errorf("%s matches: %v, want %v", c.filter, got, c.want)
		}
	}
	for filter, want := range map[string]bool{
		`{"states":null,"svcPublic":null,"svcPrivate.x":null,"svcHistory":null}`: true,
		`{"svcPublic.a":1}`: false,
	} {
		if got := mustParse(t, filter).Match(Document{}); got != want {
			t.Errorf("%s matches the empty document: %v, want %v", filter, got, want)
		}
	}
	if !(&Filter{}).Match(d) {
		t.Error("the zero filter does not match, want it to match everything")
	}
}

func TestHistoryIsReadOnlyWhenNeeded(t *testing.T) {
	calls := 0
	d := Document{
		Public:  mustClean(t, `{"a":1}`),
		History: func() data.Value { calls++; return data.Value(`[{"user":"anna"}]`) },
	}
	for _, c := range []struct {
		name, filter string
		want         int
	}{
		{"no condition on it", `{"svcPublic.a":1}`, 0},
		{"another condition fails, although it stands behind", `{"svcHistory.user":"anna","svcPublic.a":2}`, 0},
		{"one condition on it", `{"svcHistory.user":"anna","svcPublic.a":1}`, 1},
		{"two conditions on it", `{"svcHistory.user":"anna","svcHistory.0.user":"anna"}`, 1},
	} {
		calls = 0
		mustParse(t, c.filter).Match(d)
		if calls != c.want {
			t.Errorf("%s: the history is read %d times, want %d", c.name, calls, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		name, src string
		want      error
		says      string
	}{
		{"null", `null`, ErrSyntax, "must be an object, not null"},
		{"an array", `[]`, ErrSyntax, "not array"},
		{"a text", `"x"`, ErrSyntax, "not string"},
		{"a number", `1`, ErrSyntax, "not number"},
		{"true", `true`, ErrSyntax, "not bool"},
		{"blanks", ` `, ErrSyntax, ""},
		{"what is no JSON", `{a:1}`, ErrSyntax, "instead of a key"},
		{"single quotes", `{'_id':1}`, ErrSyntax, ""},
		{"trailing data", `{}{}`, ErrSyntax, "after the value"},
		{"a byte order mark", "\ufeff{}", ErrSyntax, ""},
		{"a comment", `{/*x*/}`, ErrSyntax, ""},
		{"NaN", `{"_id":NaN}`, ErrSyntax, ""},
		{"an escaped percent sign", `%7B%7D`, ErrSyntax, ""},
		{"invalid UTF-8", "{\"_id\":\"\xff\"}", ErrSyntax, "invalid UTF-8"},
		{"a lone surrogate", `{"_id":"\ud800"}`, ErrSyntax, "surrogate"},
		{"duplicate keys", `{"_id":1,"_id":2}`, ErrSyntax, "duplicate key"},
		{"an empty path", `{"":1}`, ErrRoot, `""`},
		{"only a dot", `{".":1}`, ErrRoot, ""},
		{"a leading dot", `{".svcPublic":1}`, ErrRoot, ""},
		{"a trailing dot", `{"svcPublic.":1}`, ErrSyntax, "empty segment"},
		{"two dots", `{"svcPublic..a":1}`, ErrSyntax, "empty segment"},
		{"an unknown root", `{"secret":1}`, ErrRoot, `"secret"`},
		{"a root in another case", `{"svcpublic.a":1}`, ErrRoot, ""},
		{"a root that is only a prefix", `{"svcPublicX":1}`, ErrRoot, ""},
		{"a prototype", `{"__proto__.x":1}`, ErrRoot, ""},
		{"private data", `{"svcPrivate.x":1}`, ErrRoot, `"svcPrivate"`},
		{"private data as a whole", `{"svcPrivate":{}}`, ErrRoot, ""},
		{"an operator", `{"svcPublic.a":{"$gt":1}}`, ErrUnsupported, `"$gt"`},
		{"the operator for equality", `{"svcPublic.a":{"$eq":1}}`, ErrUnsupported, `"$eq"`},
		{"an operator before others", `{"svcPublic.a":{"$in":[1],"$x":2}}`, ErrUnsupported, `"$in"`},
		{"an operator with an escape", `{"svcPublic.a":{"\u0024gt":1}}`, ErrUnsupported, `"$gt"`},
		{"an operator nobody knows", `{"svcPublic.a":{"$":1}}`, ErrUnsupported, `"$"`},
		{"$and", `{"$and":[{"_id":1}]}`, ErrUnsupported, `"$and"`},
		{"$or", `{"$or":[]}`, ErrUnsupported, `"$or"`},
		{"$where", `{"$where":"1"}`, ErrUnsupported, `"$where"`},
		{"$expr", `{"$expr":{}}`, ErrUnsupported, `"$expr"`},
		{"$oid at the top", `{"$oid":"x"}`, ErrUnsupported, `"$oid"`},
		{"$oid of a number", `{"_id":{"$oid":1}}`, ErrSyntax, "$oid"},
		{"$oid with company", `{"_id":{"$oid":"x","y":1}}`, ErrSyntax, "$oid"},
		{"a long text", `{"_id":"` + strings.Repeat("x", 16<<10) + `"}`, ErrTooLarge, "16384"},
		{"21 levels", `{"_id":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `}`, ErrTooLarge, "nested 21 deep"},
		{"10,000 levels", `{"_id":` + strings.Repeat("[", 8000) + strings.Repeat("]", 8000) + `}`, ErrSyntax, "nested deeper"},
		{"65 conditions", conditions(65), ErrTooLarge, "64 conditions"},
		{"21 segments", `{"svcPublic` + strings.Repeat(".a", 20) + `":1}`, ErrTooLarge, "20 segments"},
		{"a thousand segments", `{"svcPublic` + strings.Repeat(".a", 999) + `":1}`, ErrTooLarge, "20 segments"},
		{"five positions", `{"svcPublic.0.1.2.3.4":1}`, ErrTooLarge, "4 positions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := Parse([]byte(c.src), Options{})
			if !errors.Is(err, c.want) || f != nil {
				t.Fatalf("Parse(%.100s) = %v, %v, want %v", c.src, f, err, c.want)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("Parse(%.100s) says %q, want %q in it", c.src, err, c.says)
			}
			if len(err.Error()) > 200 {
				t.Errorf("Parse(%.100s) says too much: %s", c.src, err)
			}
		})
	}
}

func conditions(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"svcPublic.k%d":%d`, i, i))
	}
	return "{" + strings.Join(list, ",") + "}"
}

func TestParseTakesWhatIsAtTheLimit(t *testing.T) {
	for _, src := range []string{
		conditions(64),
		`{"_id":` + strings.Repeat("[", 19) + strings.Repeat("]", 19) + `}`,
		`{"svcPublic` + strings.Repeat(".a", 19) + `":1}`,
		`{"svcPublic.0.a.1.b.2.c.3":1}`,
		`{"_id":"` + strings.Repeat("x", 16<<10-10) + `"}`,
		" \n{ \"_id\" : 1 }\n",
	} {
		if _, err := Parse([]byte(src), Options{}); err != nil {
			t.Errorf("Parse(%.100s): %v, want no error", src, err)
		}
	}
}

func TestParseKeepsNothingOfItsInput(t *testing.T) {
	src := []byte(`{"svcPublic.a":"x"}`)
	f, err := Parse(src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	clear(src)
	if !f.Match(Document{Public: data.Value(`{"a":"x"}`)}) {
		t.Error("after its text is overwritten the filter does not match, want it to")
	}
}

func TestNodes(t *testing.T) {
	for _, c := range []struct {
		filter string
		want   []string
	}{
		{`{}`, nil},
		{`{"states.nodeId":"review"}`, []string{"review"}},
		{`{"svcPublic.a":1,"states.nodeId":"r\u00e9view"}`, []string{"réview"}},
		{`{"states.nodeId":{"$oid":"review"}}`, []string{"review"}},
		{`{"states.nodeId":1}`, nil},
		{`{"states.nodeId":null}`, nil},
		{`{"states.nodeId":["review"]}`, nil},
		{`{"states.0.nodeId":"review"}`, nil},
		{`{"states.nodeId.x":"review"}`, nil},
		{`{"svcPublic.nodeId":"review"}`, nil},
		{`{"states":"review"}`, nil},
	} {
		if got := mustParse(t, c.filter).Nodes(); !slices.Equal(got, c.want) {
			t.Errorf("Nodes of %s = %q, want %q", c.filter, got, c.want)
		}
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	d := instance(t)
	f := mustParse(t, `{"states.nodeId":"review","svcPublic.lines.sku":"A-0003","svcPublic.customer.city":"K\u00f6ln","workflowId":"invoice-approval"}`)
	if !f.Match(d) {
		t.Fatal("the filter does not match, want it to")
	}
	if n := testing.AllocsPerRun(100, func() { f.Match(d) }); n != 0 {
		t.Errorf("a match allocates %v times, want 0", n)
	}
}

// instance is a typical one, of about 1 KB.
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

func BenchmarkMatch(b *testing.B) {
	d := instance(b)
	for _, c := range []struct{ name, filter string }{
		{"Node", `{"states.nodeId":"review"}`},
		{"NodeMiss", `{"states.nodeId":"draft"}`},
		{"Public", `{"svcPublic.amount":1830.75}`},
		{"PublicLast", `{"svcPublic.due":"2026-12-25"}`},
		{"FanOut", `{"svcPublic.lines.sku":"A-0005"}`},
		{"Three", `{"states.nodeId":"review","svcPublic.customerId":"c-81726","svcPublic.due":"2026-12-24"}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := mustParse(b, c.filter)
			b.ReportAllocs()
			for b.Loop() {
				f.Match(d)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	src := []byte(`{"states.nodeId":"review","svcPublic.customerId":"c-81726"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(src, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
