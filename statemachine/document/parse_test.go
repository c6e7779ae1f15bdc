package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/cputest"
	"troupe/statemachine/data"
)

// dataOf parses src and returns its JSON.
func dataOf(t rapid.TB, file, src string) string {
	t.Helper()
	n, err := Parse(file, []byte(src))
	require.NoError(t, err, "Parse(%s, %.200q)", file, src)
	v, err := n.Data()
	require.NoError(t, err, "Data of %.200q", src)
	return v.String()
}

func TestValues(t *testing.T) {
	for _, c := range []struct{ name, file, src, want string }{
		{"words of other languages are texts", "a.yaml", `[on, off, yes, no, y, n, On, YES, nil, undefined]`, `["on","off","yes","no","y","n","On","YES","nil","undefined"]`},
		{"true and false in three spellings", "a.yaml", `[true, True, TRUE, false, False, FALSE, tRUE]`, `[true,true,true,false,false,false,"tRUE"]`},
		{"null in its spellings", "a.yaml", `[null, Null, NULL, ~, nULL]`, `[null,null,null,null,"nULL"]`},
		{"nothing is null", "a.yaml", "a:\nb: \n", `{"a":null,"b":null}`},
		{"what is quoted is a text", "a.yaml", `["1", 'true', "null", '~', "", '']`, `["1","true","null","~","",""]`},
		{"blocks are texts", "a.yaml", "a: |\n  1\nb: >-\n  true\n", `{"a":"1\n","b":"true"}`},
		{"a text by its tag", "a.yaml", `!!str 12`, `"12"`},
		{"timestamps are texts", "a.yaml", `[2026-11-21, 2026-11-21T10:20:30Z, 2001-12-14 21:59:43.10]`, `["2026-11-21","2026-11-21T10:20:30Z","2001-12-14 21:59:43.10"]`},
		{"numbers to the base 60 are texts", "a.yaml", `[1:30, 190:20:30]`, `["1:30","190:20:30"]`},
		{"numbers keep their spelling", "a.yaml", `[1.10, 1e3, 1E+2, -0, 9007199254740993, 1e400, 0.1e-5]`, `[1.10,1e3,1E+2,-0,9007199254740993,1e400,0.1e-5]`},
		{"numbers in YAML's own spelling", "a.yaml", `[+1, .5, -.5, 5., +.5e3, 1_000, 1_000.000_1]`, `[1,0.5,-0.5,5,0.5e3,1000,1000.0001]`},
		{"hexadecimal and octal", "a.yaml", `[0x1F, 0xdead_beef, 0xf_e0, 0o17, 0xffffffffffffffffffff]`, `[31,3735928559,4064,15,1208925819614629174706175]`},
		{"what only looks like a number is a text", "a.yaml", `[1_, _1, 1__0, 0x, 0o8, 0b101, 1e, 1.2.3, "-", +, ., ..., 1a, -0x10, 0x_f, e5, 192.168.0.1, .e5]`, `["1_","_1","1__0","0x","0o8","0b101","1e","1.2.3","-","+",".","...","1a","-0x10","0x_f","e5","192.168.0.1",".e5"]`},
		{"expressions are texts", "a.yaml", `a: ${user.id}`, `{"a":"${user.id}"}`},
		{"escapes of YAML", "a.yaml", `"\x41\u00e9\U0001F600\0"`, `"Aé😀\u0000"`},
		{"a byte order mark goes", "a.yaml", "\ufeffa: 1\n", `{"a":1}`},
		{"keys of every look", "a.yaml", `{on: 1, 2026-11-21: 2, P2D: 3, "1": 4, "": 5, "<<": 6, 'true': 7, a b: 8}`, `{"on":1,"2026-11-21":2,"P2D":3,"1":4,"":5,"<<":6,"true":7,"a b":8}`},
		{"order is kept", "a.yaml", "z: 1\na: 2\nm: 3\n", `{"z":1,"a":2,"m":3}`},
		{"aliases", "a.yaml", "a: &x {p: [1, 2]}\nb: *x\nc: [*x, *x]\n", `{"a":{"p":[1,2]},"b":{"p":[1,2]},"c":[{"p":[1,2]},{"p":[1,2]}]}`},
		{"a document may have its marks", "a.yaml", "---\na: 1\n...\n", `{"a":1}`},
		{"an empty file is null", "a.yaml", "", `null`},
		{"a file of comments is null", "a.yaml", "# nothing\n", `null`},
		{"JSON is YAML", "a.yaml", `{"a": [1, true, null, "x"]}`, `{"a":[1,true,null,"x"]}`},
		{"merge signs elsewhere are texts", "a.yaml", `a: <<`, `{"a":"<<"}`},

		{"everything", "a.JSON", ` { "b" : [ 1.0 , true , null ] , "a" : { } , "c" : [ ] } `, `{"b":[1.0,true,null],"a":{},"c":[]}`},
		{"surrogate pairs", "a.JSON", `{"\ud83d\ude00":"\ud83d\ude00"}`, `{"😀":"😀"}`},
		{"escapes", "a.JSON", `"\"\\\/\b\f\n\r\t\u0000"`, `"\"\\/\b\f\n\r\t\u0000"`},
		{"numbers keep their spelling", "a.JSON", `[9007199254740993,1e400,-0,1.10]`, `[9007199254740993,1e400,-0,1.10]`},
		{"a scalar alone", "a.JSON", `7`, `7`},
		{"words of YAML are texts", "a.JSON", `["on","~"]`, `["on","~"]`},
	} {
		assert.Equal(t, c.want, dataOf(t, c.file, c.src), "%v %v", c.name, c.src)
	}
}

func TestPlaces(t *testing.T) {
	yaml := "é: x\nlist:\n  - a\n  - {ü: 1, k: yes}\nb: &n\n  deep: 1\nc: *n\n"
	root, err := Parse("a.yml", []byte(yaml))
	require.NoError(t, err)
	text := "{\n \"é\": \"ü\", \"list\": [\n1,\r\n\t{\"k\": 2}]\n}"
	tree, err := Parse("a.json", []byte(text))
	require.NoError(t, err)
	item := root.Field("list").Items[1]
	for _, c := range []struct {
		name         string
		n            *Node
		line, column int
	}{
		{"the root", root, 1, 1},
		{"a value behind a wide character", root.Field("é"), 1, 4},
		{"an element", root.Field("list").Items[0], 3, 5},
		{"a flow mapping", item, 4, 5},
		{"a key in it", item.Fields[1].Key, 4, 12},
		{"a value in it", item.Field("k"), 4, 15},
		{"an alias stands where it is used", root.Field("c"), 7, 4},
		{"what it stands for, where it is written", root.Field("c").Field("deep"), 6, 9},
		{"the root of JSON", tree, 1, 1},
		{"a key of JSON", tree.Fields[0].Key, 2, 2},
		{"a value of JSON", tree.Field("é"), 2, 7},
		{"a key behind wide characters", tree.Fields[1].Key, 2, 12},
		{"an element of JSON", tree.Field("list").Items[0], 3, 1},
		{"a value behind a tab", tree.Field("list").Items[1].Field("k"), 4, 8},
	} {
		assert.True(t, c.n.Line == c.line && c.n.Column == c.column, "%s is at %d:%d, want %d:%d", c.name, c.n.Line, c.n.Column, c.line, c.column)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ name, file, src, want string }{
		{"a duplicate key", "a.yaml", "a: 1\nb: 2\na: 3\n", `a.yaml:3:1: duplicate key "a", the first is in line 1 (leave one of them out)`},
		{"duplicate keys in two spellings", "a.yaml", "{a: 1, \"a\": 2}", `a.yaml:1:8: duplicate key "a", the first is in line 1 (leave one of them out)`},
		{"a number as key", "a.yaml", "after:\n  1e3: x\n", `a.yaml:2:3: a key must be a text, and "1e3" is a number (quote it)`},
		{"a whole number as key in two spellings", "a.yaml", "1000: x\n\"1000\": x\n", `a.yaml:2:1: duplicate key "1000", the first is in line 1 (leave one of them out)`},
		{"true as key", "a.yaml", "true: x\n", `a.yaml:1:1: a key must be a text, and "true" is true or false (quote it)`},
		{"null as key", "a.yaml", "~: x\n", `a.yaml:1:1: a key must be a text, and "~" is null (quote it)`},
		{"a list as key", "a.yaml", "? [a]\n: 1\n", `a.yaml:1:3: a key must be a text (quote a text that begins with a special character)`},
		{"an alias as key", "a.yaml", "a: &x b\n*x : 1\n", `a.yaml:2:1: a key must be a text (quote a text that begins with a special character)`},
		{"a merge key", "a.yaml", "a: &x {b: 1}\nc:\n  <<: *x\n", `a.yaml:3:3: merge keys are not supported (write the members out, or quote the key)`},
		{"several documents", "a.yaml", "a: 1\n---\nb: 2\n", `a.yaml:2:1: several documents in one file (keep what is behind the --- in a file of its own)`},
		{"an infinity", "a.yaml", "a: .inf\n", `a.yaml:1:4: JSON has no number .inf (quote it if it is a text)`},
		{"no number", "a.yaml", "a: [.NaN]\n", `a.yaml:1:5: JSON has no number .NaN (quote it if it is a text)`},
		{"a leading zero", "a.yaml", "zip: 01234\n", `a.yaml:1:6: a number with a leading zero: "01234" (quote it if it is a text, leave out the zero if not, write 0o for octal)`},
		{"a leading zero in a key", "a.yaml", "007: x\n", `a.yaml:1:1: a number with a leading zero: "007" (quote it if it is a text, leave out the zero if not, write 0o for octal)`},
		{"a huge exponent", "a.yaml", "a: 1e999999999999999999\n", `a.yaml:1:4: the exponent is too large: "1e999999999999999999" (quote it if it is a text)`},
		{"a long hexadecimal number", "a.yaml", "a: 0x" + strings.Repeat("f", 200) + "\n", `a.yaml:1:4: the number is too long: "0x` + strings.Repeat("f", 57) + `..." (quote it if it is a text)`},
		{"a tag", "a.yaml", "a: !!int 1\n", `a.yaml:1:4: tags like "!!int" are not used here (leave the tag out)`},
		{"a tag of one's own", "a.yaml", "a: !secret {b: 1}\n", `a.yaml:1:4: tags like "!secret" are not used here (leave the tag out)`},
		{"the tag of a text at a mapping", "a.yaml", "a: !!str {b: 1}\n", `a.yaml:1:4: tags like "!!str" are not used here (leave the tag out)`},
		{"an empty tag", "a.yaml", "a: ! 12\n", `a.yaml:1:4: tags like "!" are not used here (leave the tag out)`},
		{"a tag at a key", "a.yaml", "!!binary a: 1\n", `a.yaml:1:1: tags like "!!binary" are not used here (leave the tag out)`},
		{"an alias of nothing", "a.yaml", "a: *x\n", `a.yaml:1:4: the alias has no anchor in front of it`},
		{"an alias of what it is in", "a.yaml", "a: &x [1, *x]\n", `a.yaml:1:11: an alias inside what it stands for`},
		{"a colon in a text", "a.yaml", "a: b: c\n", `a.yaml:1:5: mapping values are not allowed in this context (quote a text that contains ": ")`},
		{"a tab", "a.yaml", "a:\n\tb: 1\n", `a.yaml:2:1: while scanning for the next token: found character that cannot start any token (indent with blanks, not tabs; quote a text that begins with @ or ` + "`)"},
		{"an open bracket", "a.yaml", "a: [1\n", `a.yaml:2:1: while parsing a flow sequence: did not find expected ',' or ']' (close the bracket)`},
		{"surrogates", "a.yaml", `"\ud83d\ude00"`, `a.yaml:1:4: while scanning a quoted scalar: found invalid Unicode character escape code (write the character itself)`},
		{"a version", "a.yaml", "%YAML 1.2\n---\na: 1\n", `a.yaml:1:1: found incompatible YAML document (leave the %YAML line out; files are read as YAML 1.2)`},
		{"what is not UTF-8", "a.yaml", "é: 1\nb: \xff\n", `a.yaml:2:4: the byte 0xff is not UTF-8 (save the file as UTF-8)`},
		{"65 levels", "a.yaml", strings.Repeat("[", 65) + strings.Repeat("]", 65), `a.yaml:1:65: while increasing flow level: exceeded max depth of 64`},
		{"aliases that nest 65 levels", "a.yaml", "a: &a " + strings.Repeat("[", 60) + strings.Repeat("]", 60) + "\nb: [[[[*a]]]]\n", `a.yaml:1:66: nested deeper than 64`},

		{"a duplicate key in JSON", "a.json", "{\"a\":1,\n \"\\u0061\":2}", `a.json:2:2: duplicate key "a" (leave one of them out)`},
		{"JSON with a comment", "a.json", "{\n// x\n}", `a.json:2:1: unexpected "/" instead of a key in an object`},
		{"JSON that is YAML", "a.json", "a: 1", `a.json:1:1: unexpected "a" instead of a value`},
		{"an empty JSON file", "a.json", "", `a.json:1:1: unexpected end instead of a value`},
		{"a byte order mark in JSON", "a.json", "\ufeff{}", `a.json:1:1: unexpected "\ufeff" instead of a value`},
		{"half of a surrogate pair", "a.json", `["é", "\ud83d"]`, `a.json:1:8: half of a surrogate pair`},
		{"JSON that is not UTF-8", "a.json", "[\"é\xff\"]", `a.json:1:4: the byte 0xff is not UTF-8 (save the file as UTF-8)`},
		{"JSON of 65 levels", "a.json", strings.Repeat("[", 65) + strings.Repeat("]", 65), `a.json:1:65: nested deeper than 64`},
	} {
		n, err := Parse(c.file, []byte(c.src))
		faults := Faults(nil)
		assert.True(t, errors.As(err, &faults) && n == nil && err.Error() == c.want, "%v %v %v %v %v", c.name, c.src, n, err, c.want)
	}
}

func TestAllFaultsAreFoundAtOnce(t *testing.T) {
	_, err := Parse("a.yaml", []byte("b: 01\na: .inf\n1.0: x\nb: 2\n"))
	want := []string{"a.yaml:1:4: a number with", "a.yaml:2:4: JSON has no", "a.yaml:3:1: a key must", "a.yaml:4:1: duplicate key"}
	lines := strings.Split(fmt.Sprint(err), "\n")
	require.Len(t, lines, len(want), "faults:\n%v", err)
	for i, line := range lines {
		assert.True(t, strings.HasPrefix(line, want[i]), "fault %d is %q, want %q…", i, line, want[i])
	}
}

// TestFilesMadeToCostMuch runs files that are small and stand for something
// large, or are slow for a careless reader.
func TestFilesMadeToCostMuch(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'j'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s*%c]\n", c, c, strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), c-1)
	}
	for _, c := range []struct{ name, file, src, want string }{
		{"a billion laughs", "a.yaml", bomb, "more than 100000 values"},
		{"a file too large", "a.yaml", strings.Repeat("#", maxBytes+1), "more than 1048576"},
		{"too many values", "a.yaml", strings.Repeat("- a\n", maxNodes+1), "more than 100000 values"},
		{"too many values in a line", "a.yaml", "[" + strings.Repeat("a,", maxNodes+1) + "]", "more than 100000 values"},
		{"too many values in JSON", "a.json", "[" + strings.Repeat("1,", maxNodes) + "1]", "more than 100000 values"},
		{"too many members in JSON", "a.json", "{" + manyMembers(60_000) + "}", "more than 100000 values"},
		{"a million brackets", "a.yaml", strings.Repeat("[", maxBytes), "max depth"},
		{"half a million dashes", "a.yaml", strings.Repeat("- ", maxBytes/2), "max depth"},
		{"a million brackets in JSON", "a.json", strings.Repeat("[", maxBytes), "nested deeper"},
		{"many faults", "a.yaml", strings.Repeat("a: 01\n", 1000), " more"},
		{"a long line of JSON", "a.json", "[" + strings.Repeat(`"é",`, 99_998) + "1]", ""},
		{"a long number", "a.yaml", strings.Repeat("9", maxBytes-1), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			watched := cputest.Watch()
			_, err := Parse(c.file, []byte(c.src))
			assert.LessOrEqual(t, watched(), 20*time.Second, "Parse took, %d", len(c.src))
			got := fmt.Sprint(err)
			assert.True(t, (c.want != "" || err == nil) && strings.Contains(got, c.want), "Parse: %.300s, want %q", got, c.want)
			assert.LessOrEqual(t, len(fmt.Sprint(err)), 64<<10, "the message")
		})
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":1,`, i)
	}
	return b.String() + `"z":1`
}

func TestJSONMeansTheSameAsYAML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := tree(3).Draw(t, "tree")
		text, err := json.Marshal(x)
		require.NoError(t, err)
		yaml := dataOf(t, "a.yaml", string(text))
		asJSON := dataOf(t, "a.json", string(text))
		require.True(t, data.Equal(data.Value(asJSON), text) && yaml == asJSON, "%s is %s as JSON, %s as YAML", text, asJSON, yaml)
	})
}

// tree draws what encoding/json writes; no characters that YAML wants escaped
// differently.
func tree(depth int) *rapid.Generator[any] {
	text := rapid.StringMatching(`[a-zé0-9 :#'"\[\]{},&*!|>%@~-]{0,8}`)
	leaf := rapid.OneOf(
		rapid.Map(text, func(s string) any { return s }),
		rapid.Map(rapid.Int64(), func(i int64) any { return i }),
		rapid.Map(rapid.Float64(), func(f float64) any { return f }),
		rapid.SampledFrom([]any{nil, true, false, "on", "yes", "2026-11-21", "1", "01", "<<"}),
	)
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(tree(depth-1), 0, 4), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(text, tree(depth-1), 0, 4), func(m map[string]any) any { return m }),
	)
}

func FuzzParseYAML(f *testing.F) {
	for _, s := range []string{"a: [1, {b: 'x'}]\n", "a: &x 1\nb: *x\n", "? a\n: b\n", "a: |\n x\n", "%TAG ! x\n---\n!y z", "- - 0x1\n- 1_0\n", "\xff\xfea\x00", "{a: 1, <<: {b: 2}}", "a: \"\\ud83d\"", "'a': .inf"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) { checkParse(t, "a.yaml", src) })
}

func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"\ud83d\ude00"}]}`, ` [ ] `, `{"a":1,"a":2}`, "\"\xff\"", "1e400", "{\n\"é\" : \r\n null }"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		n := checkParse(t, "a.json", src)
		want, err := data.Clean(src)
		require.Equal(t, err != nil, n == nil, "Parse takes %q: %v, Clean: %v", src, n != nil, err)
		if n == nil {
			return
		}
		got, _ := n.Data()
		require.True(t, data.Equal(got, want), "Data of %q is %s, want %s", src, got, want)
	})
}

// checkParse parses src and holds what comes out to what Parse promises.
func checkParse(t *testing.T, file string, src []byte) *Node {
	watched := cputest.Watch()
	n, err := Parse(file, src)
	require.LessOrEqual(t, watched(), 20*time.Second, "Parse(%.100q) took, %d", src, len(src))
	if err != nil {
		var faults Faults
		require.True(t, errors.As(err, &faults) && len(faults) != 0 && n == nil, "Parse(%q) = %v, %v, want only Faults", src, n, err)
		for _, fault := range faults {
			require.True(t, fault.Reason != "" && !strings.Contains(fault.Reason, "gave up"), "Parse(%q): %+v, want a reason of the file's own", src, fault)
		}
		return nil
	}
	v, err := n.Data()
	require.NoError(t, err, "Data of %q", src)
	clean, err := data.Clean(v)
	require.True(t, err == nil && clean.String() == v.String(), "Data of %q is %s, which is not clean: %v", src, v, err)
	again, err := Parse("a.json", v)
	require.NoError(t, err, "Data of %q is %s, which does not parse", src, v)
	w, _ := again.Data()
	require.Equal(t, v.String(), w.String(), "reads back")
	checkPlaces(t, src, n)
	return n
}

func checkPlaces(t *testing.T, src []byte, n *Node) {
	require.True(t, n.Line >= 1 && n.Column >= 1 && n.Line <= len(src)+2, "a node of %q is at %d:%d", src, n.Line, n.Column)
	for _, item := range n.Items {
		checkPlaces(t, src, item)
	}
	for _, f := range n.Fields {
		checkPlaces(t, src, f.Key)
		checkPlaces(t, src, f.Value)
	}
}
