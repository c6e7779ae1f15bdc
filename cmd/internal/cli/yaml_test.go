package cli

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

func TestYAML(t *testing.T) {
	tests := []struct{ name, json, want string }{
		{"a word", `"review"`, "review\n"},
		{"a sentence", `"waiting for a manager"`, "waiting for a manager\n"},
		{"words that mean something", `["true","No","null","y","on","~",""]`, "- \"true\"\n- \"No\"\n- \"null\"\n- \"y\"\n- \"on\"\n- \"~\"\n- \"\"\n"},
		{"texts like numbers", `["1","1e5","0x1f","1:30","2026-11-21",".5","-1"]`, "- \"1\"\n- \"1e5\"\n- \"0x1f\"\n- \"1:30\"\n- \"2026-11-21\"\n- \".5\"\n- \"-1\"\n"},
		{"texts with signs", `["a: b","a #b","- a","{a}","a ","<<","a\\b"]`, "- \"a: b\"\n- \"a #b\"\n- \"- a\"\n- \"{a}\"\n- \"a \"\n- \"<<\"\n- \"a\\\\b\"\n"},
		{"what does not print", `"\u0007\n\t\u001b\u0085\u202e\ud83d\ude00é"`, "\"\\a\\n\\t\\x1b\\u0085\\u202e😀é\"\n"},
		{"what does not print and is large", `"\udb40\udc01"`, "\"\\U000e0001\"\n"},
		{"numbers", `[1.50,12345678901234567890,1e400,-0]`, "- 1.50\n- 12345678901234567890\n- 1e400\n- -0\n"},
		{"order", `{"b":1,"a":{"d":true,"c":null}}`, "b: 1\na:\n  d: true\n  c: null\n"},
		{"nothing in it", `{"a":{},"b":[],"c":[{},[]]}`, "a: {}\nb: []\nc:\n- {}\n- []\n"},
		{"in each other", `[[1,[2]],{"a":[3,{"b":4}]}]`, "- - 1\n  - - 2\n- a:\n  - 3\n  - b: 4\n"},
		{"keys", `{"":1,"1":2,"a b":3,"a:b":4,"true":5}`, "\"\": 1\n\"1\": 2\na b: 3\n\"a:b\": 4\n\"true\": 5\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := AppendYAML(nil, []byte(test.json))
			assert.True(t, err == nil && string(got) == test.want, "got %q, %v, want %q", got, err, test.want)
		})
	}
	_, err := AppendYAML(nil, []byte(`{"a":`))
	assert.Error(t, err, "got no error for what is no JSON")
}

// TestYAMLMeansTheSame reads what was written with the reader of our own text
// files.
func TestYAMLMeansTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawJSON(t, 4)
		want, err := data.Clean([]byte(text))
		if err != nil {
			t.Skip("two keys are the same")
		}
		got, err := AppendYAML(nil, []byte(text))
		require.NoError(t, err, text)
		sameYAML(t, got, want)
		item, err := AppendYAML([]byte("list:\n"), []byte("["+text+"]"))
		require.NoError(t, err, text)
		sameYAML(t, item, data.Value(`{"list":[`+want.String()+`]}`))
	})
}

func sameYAML(t *rapid.T, yaml []byte, want data.Value) {
	tree, err := document.Parse("x.yaml", yaml)
	require.NoError(t, err, "%s\nis\n%s", want, yaml)
	got, err := tree.Data()
	require.True(t, err == nil && got.String() == want.String(), "got %s, %v, want %s from\n%s", got, err, want, yaml)
}

// drawJSON draws compact JSON in the spelling of package data.
func drawJSON(t *rapid.T, depth int) string {
	texts := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching(`[ -~]{0,12}`),
		rapid.SampledFrom([]string{"yes", "1.5", "null", "- a", "a: b", "---", "...", "? a", "!tag", "&a", "*a", "%x", "@x", "`x`", "|", ">", "\u2028", "\ufeff", "\u007f", strings.Repeat("k", 1100)}),
	)
	quoted := func(name string) string { return string(data.AppendString(nil, texts.Draw(t, name))) }
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return quoted("text")
	case 1:
		return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "word")
	case 2:
		return strconv.Itoa(rapid.Int().Draw(t, "whole"))
	case 3:
		return rapid.SampledFrom([]string{"1.50", "-0.25", "1.5e10", "123456789012345678901234567890", "0.1e-3"}).Draw(t, "number")
	case 4, 5:
		var members []string
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			members = append(members, quoted("key")+":"+drawJSON(t, depth-1))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	var elements []string
	for range rapid.IntRange(0, 3).Draw(t, "elements") {
		elements = append(elements, drawJSON(t, depth-1))
	}
	return "[" + strings.Join(elements, ",") + "]"
}
