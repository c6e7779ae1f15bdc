package markdown_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/statemachine/internal/markdown"
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
		assert.Equal(t, want, markdown.Section(document, heading), heading)
	}
}

func TestTables(t *testing.T) {
	want := []markdown.Table{{[]string{"A", "B"}, [][]string{{"x", "`y` and `z`"}, {"x|y", ""}}}, {[]string{"C"}, [][]string{{"c"}}}}
	assert.Equal(t, want, markdown.Tables(document))
	got := markdown.Tables(markdown.Section(document, "Two"))
	assert.True(t, len(got) == 1 && got[0].Header[0] == "C", "of a section: got %q", got)
}

func TestBlocks(t *testing.T) {
	got := markdown.Blocks(document, "yaml")
	assert.True(t, len(got) == 1 && got[0] == "# no heading\na: 1\n", "got %q", got)
}
