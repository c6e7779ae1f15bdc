package statemachine

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/document"
	"troupe/statemachine/internal/markdown"
	"troupe/statemachine/schematest"
)

func beside(name string) ([]byte, error) {
	if name == "amount.schema.json" || name == "invoice.schema.json" {
		return []byte(`{"type": "object", "properties": {"amount": {"type": "number"}}}`), nil
	}
	return nil, errors.New("file is not there")
}

// format is the schema of definitions, or a text in its place, with the parser.
func format(t testing.TB, schema string) *schematest.Format {
	t.Helper()
	p := newParser(t)
	return schematest.New(t, schema, func(file []byte) error {
		_, err := p.Parse(Source{File: "w.json", Text: file, Read: beside})
		return err
	})
}

func accepted(t testing.TB) (texts []string) {
	t.Helper()
	all := scripts(t, allScripts)
	all = append(all, markdown.Blocks(readDefinitionDocument(t), "yaml")...)
	for _, pattern := range []string{"../cmd/troupe/example/workflows/*", "../cmd/troupe/testdata/homes/*/workflows/*", "../bench/*/*.yaml", "../bench/internal/*/*.yaml", "../gateway/servertest/*.yaml", "../actors/formportal/plain.yaml"} {
		files, err := filepath.Glob(pattern)
		require.True(t, err == nil && len(files) != 0, "%s: no files, %v", pattern, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			all = append(all, string(text))
		}
	}
	p := newParser(t)
	read := func(string) ([]byte, error) { return []byte(`{}`), nil }
	for _, text := range all {
		if _, err := p.Parse(Source{File: "w.yaml", Text: []byte(text), Read: read}); err == nil {
			texts = append(texts, text)
		}
	}
	require.GreaterOrEqual(t, len(texts), 50, "definitions, want more")
	return texts
}

func readDefinitionDocument(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("DEFINITION.md")
	require.NoError(t, err)
	return string(text)
}

func TestTheSchemaTakesEveryDefinition(t *testing.T) {
	format(t, DefinitionSchema()).Takes(t, accepted(t)...)
}

// TestTheSchemaHasEveryKey compares it with the tables of the parser, both ways.
func TestTheSchemaHasEveryKey(t *testing.T) {
	tables := map[string][]string{}
	for _, of := range keyTables {
		for _, place := range of.schema {
			tables[place] = of.keys
		}
	}
	schematest.HasKeys(t, DefinitionSchema(), tables)
}

func TestTheSchemaHasEveryWord(t *testing.T) {
	for _, of := range wordTables {
		for _, place := range of.schema {
			schematest.HasWords(t, DefinitionSchema(), place, of.words)
		}
	}
}

func TestTheSchemaDescribesEveryKey(t *testing.T) { schematest.Describes(t, DefinitionSchema()) }

// unseen are faults that a schema cannot see, because it knows neither names nor expressions.
var unseen = []struct{ fault, why string }{
	{`a document of SCXML has one state machine|known here: workflow, version, type, id`, "charts with the rules of SCXML"},
	{`expression: |In\(…\)`, "the language of expressions"},
	{`unknown (target|role|privilege|guard|action|webhook|event|id|zone|type of jobs) `, "names that stand elsewhere"},
	{`duplicate (node|state machine)|contains itself|cannot be a variable|must lie inside|no exit|unreachable|can never be taken|cycle of eventless|cannot be active together|default of history node|needs a target as its default|has no node that can be active|cannot be a region`, "the chart as a whole"},
	{`cannot be (raised|sent|the event of an outcome|an event that callers send)`, "names that are reserved"},
	{`is applied in every state|"apply" cannot hold|the rule is empty: |takes all the data`, "keys that depend on others"},
	{`JSON Schema: `, "the schemas inside, which have a schema of their own"},
	{`a constant cannot be an expression|cannot be the name of a constant`, "texts that are expressions, and the words of their language"},
	{`a delay is at most|must be longer than 0|"(P|P1DT|1e3)": a delay is a duration`, "the range of a delay, and numbers that are written otherwise"},
	{`failed to parse int from MOON|it is never due`, "what the fields of cron say"},
	{`a text for people may not read|this text cannot have an expression|cannot be seen|longer than|stands twice`, "what stands in the texts for people"},
	{`a key may not read|the key is the same`, "what stands in the key"},
	{`mail: to is|": a webhook is http`, "addresses"},
}

// TestTheSchemaSeesFaultsOfShape: of each script with faults it refuses those that have a fault which a schema can see.
func TestTheSchemaSeesFaultsOfShape(t *testing.T) {
	f := format(t, DefinitionSchema())
	used := map[string]bool{}
	var blind []*regexp.Regexp
	for _, u := range unseen {
		blind = append(blind, regexp.MustCompile(u.fault))
	}
	files, err := filepath.Glob("testdata/fault/*.txt")
	require.True(t, err == nil && len(files) != 0, "no scripts: %v", err)
	refused := 0
	for _, file := range files {
		datadriven.RunTest(t, file, func(t *testing.T, cmd *datadriven.TestData) string {
			tree, err := document.Parse("w."+cmd.Cmd, []byte(cmd.Input))
			if err != nil {
				return cmd.Expected // no text of the format
			}
			definition, err := tree.Data()
			require.NoError(t, err)
			shape := ""
			for line := range strings.Lines(cmd.Expected) {
				i := slices.IndexFunc(blind, func(r *regexp.Regexp) bool { return r.MatchString(line) })
				switch {
				case i >= 0:
					used[unseen[i].fault] = true
				case strings.HasPrefix(line, "w."):
					shape = line
				}
			}
			err = f.Check(definition)
			assert.False(t, shape != "" && err == nil, "%s: the schema takes what has the fault\n%s", cmd.Pos, shape)
			if err != nil {
				refused++
			}
			return cmd.Expected
		})
	}
	assert.GreaterOrEqual(t, refused, 20, "the schema refuses")
	for _, u := range unseen {
		assert.True(t, used[u.fault], "no script has a fault like %s (%s)", u.fault, u.why)
	}
}

func TestTheSchemaIsNeverStricterThanTheParser(t *testing.T) {
	format(t, DefinitionSchema()).IsNeverStricter(t, accepted(t)...)
}

// TestAStricterSchemaIsFound is the control. It has one small file, in which few changes meet each key.
func TestAStricterSchemaIsFound(t *testing.T) {
	const small = "id: c\nactions: {note: [{log: n}]}\nstateMachines: {m: {initial: a, states: {a: {description: x, entry: [{log: y}], exit: note, on: {go: {target: b, guard: 'true', actions: [{log: z}]}}}, b: {type: final}}}}\n"
	for _, slip := range []struct{ from, to string }{
		{`"type": ["string", "object", "array", "null"]`, `"type": ["string", "object", "array"]`},
		{`"type": ["object", "string", "array", "null"], "minProperties": 1`, `"type": ["object", "array", "null"], "minProperties": 1`},
		{`"description": {"description": "What the state is for; it has no effect."}`, `"description": {"type": "string"}`},
	} {
		schema := strings.Replace(DefinitionSchema(), slip.from, slip.to, 1)
		assert.NotEqual(t, DefinitionSchema(), schema, "the schema has no %s", slip.from)
		t.Run(slip.to, func(t *testing.T) { format(t, schema).IsStricter(t, 20_000, small) })
	}
}
