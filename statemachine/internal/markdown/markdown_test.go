package markdown

import (
	"reflect"
	"testing"
)

const document = "# Top\n\n## One\n\n| A | B |\n|---|---|\n| `x` | `y` and `z` |\n| `x|y` | |\n\n```yaml\n# no heading\na: 1\n```\n\n### Below\n\ntext\n" +
	"\n## Two\n\n```json\n{}\n```\n\n| C |\n|---|\n| c |\n"

func TestSection(t *testing.T) {
	for heading, want := range map[string]string{
		"Below":      "\ntext\n\n",
		"Two":        "\n```json\n{}\n```\n\n| C |\n|---|\n| c |\n",
		"no heading": "",
		"Three":      "",
	} {
		if got := Section(document, heading); got != want {
			t.Errorf("%s: got %q, want %q", heading, got, want)
		}
	}
}

func TestTables(t *testing.T) {
	want := []Table{{[]string{"A", "B"}, [][]string{{"x", "`y` and `z`"}, {"x|y", ""}}}, {[]string{"C"}, [][]string{{"c"}}}}
	if got := Tables(document); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Tables(Section(document, "Two")); len(got) != 1 || got[0].Header[0] != "C" {
		t.Errorf("of a section: got %q", got)
	}
}

func TestBlocks(t *testing.T) {
	if got := Blocks(document, "yaml"); len(got) != 1 || got[0] != "# no heading\na: 1\n" {
		t.Errorf("got %q", got)
	}
}
