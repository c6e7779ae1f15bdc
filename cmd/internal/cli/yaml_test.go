package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestYAML: what document.Write writes means the same (statemachine/document, TestWhatIsWrittenIsReadAgain).
func TestYAML(t *testing.T) {
	tests := []struct{ name, json, want string }{
		{"a word", `"review"`, "review\n"},
		{"a sentence", `"waiting for a manager"`, "waiting for a manager\n"},
		{"words that mean something", `["true","No","null","y","on","~",""]`, "- 'true'\n- 'No'\n- 'null'\n- 'y'\n- 'on'\n- '~'\n- ''\n"},
		{"texts like numbers", `["1","1e5","0x1f","1:30","2026-11-21",".5","-1"]`, "- '1'\n- '1e5'\n- '0x1f'\n- '1:30'\n- '2026-11-21'\n- '.5'\n- '-1'\n"},
		{"texts with signs", `["a: b","a #b","- a","{a}","a ","<<","a\\b"]`, "- 'a: b'\n- 'a #b'\n- '- a'\n- '{a}'\n- 'a '\n- '<<'\n- 'a\\b'\n"},
		{"what does not print", `"\u0007\n\t\u001b\u0085\u202e\ud83d\ude00é"`, "\"\\u0007\\n\\u0009\\u001B\\u0085\\u202E😀é\"\n"},
		{"what does not print and is large", `"\udb40\udc01"`, "\"\\U000E0001\"\n"},
		{"numbers", `[1.50,12345678901234567890,1e400,-0]`, "- 1.50\n- 12345678901234567890\n- 1e400\n- -0\n"},
		{"order", `{"b":1,"a":{"d":true,"c":null}}`, "b: 1\na:\n  d: true\n  c: null\n"},
		{"nothing in it", `{"a":{},"b":[],"c":[{},[]]}`, "a: {}\nb: []\nc:\n- {}\n- []\n"},
		{"in each other", `[[1,[2]],{"a":[3,{"b":4}]}]`, "- - 1\n  - - 2\n- a:\n  - 3\n  - b: 4\n"},
		{"keys", `{"":1,"1":2,"a b":3,"a:b":4,"true":5,"on":6}`, "'': 1\n'1': 2\na b: 3\n'a:b': 4\n'true': 5\n'on': 6\n"},
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
