package statemachine

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/clause"
	"troupe/statemachine/internal/fault"
	"troupe/statemachine/internal/markdown"
	"troupe/statemachine/internal/parse"
	"troupe/statemachine/internal/pattern"
	"troupe/statemachine/internal/schemacost"
	"troupe/statemachine/schema"
)

func readDocument(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("DEFINITION.md")
	require.NoError(t, err)
	return string(text)
}

func firstCells(t *testing.T, heading string, n int) []string {
	t.Helper()
	tables := markdown.Tables(markdown.Section(readDocument(t), heading))
	require.Greater(t, len(tables), n, "tables below %q, want more", heading)
	var cells []string
	for _, row := range tables[n].Rows {
		cells = append(cells, row[0])
	}
	return cells
}

// keyTables are the parser's tables of keys, with the table below a heading of DEFINITION.md, "Keys", that has each, and the
// places of the schema for editors. Some are in one of the two alone.
var keyTables = []struct {
	heading string
	table   int
	keys    []string
	schema  []string
}{
	{"Top of the file", 0, clause.DefinitionKeys, []string{""}},
	{"Top of the file", 1, clause.OwnersKeys, []string{"properties/owners"}},
	{"Top of the file", 2, clause.RightKeys, []string{"properties/allow"}},
	{"Top of the file", 3, clause.InvokerKeys, []string{"properties/allow/properties/invoke"}},
	{"Top of the file", 4, clause.DocumentKeys, []string{"properties/context", "properties/create", "properties/schema", "$defs/instanceData"}},
	{"Texts for people", 0, clause.ColumnKeys, []string{"$defs/column"}},
	{"Webhooks", 0, clause.WebhookKeys, []string{"$defs/webhook"}},
	{"Webhooks", 1, clause.RetryKeys, []string{"$defs/retry"}},
	{"Types of jobs", 0, clause.JobKeys, []string{"$defs/jobType"}},
	{"Schedules", 0, clause.ScheduleKeys, []string{"$defs/schedule"}},
	{"Schedules", 1, clause.RetentionKeys, []string{"properties/retention"}},
	{"Event declarations", 0, clause.EventKeys, []string{"$defs/event"}},
	{"State machines and states", 0, clause.NodeKeys, []string{"$defs/node"}},
	{"State machines and states", 1, clause.TaskKeys, []string{"$defs/task"}},
	{"State machines and states", 2, clause.InvokeKeys, []string{"$defs/invoke"}},
	{"Transitions", 0, clause.TransitionKeys, []string{"$defs/transitions"}},
	{"Rules", 0, clause.RuleKeys, []string{"$defs/rule"}},
	{"Actions", 0, clause.ActionKeys, nil},
	{"Actions", 1, clause.RaiseKeys, []string{"$defs/actions/properties/raise"}},
	{"Actions", 2, clause.SendKeys, []string{"$defs/actions/properties/send"}},
	{"Actions", 3, clause.SendOutKeys, []string{"$defs/actions/properties/webhook"}},
	{"Actions", 4, clause.MailKeys, []string{"$defs/actions/properties/mail"}},
	{"Actions", 5, clause.IfKeys, nil},
	{"Actions", 6, clause.ForEachKeys, []string{"$defs/actions/properties/foreach"}},
	{"", 0, slices.Concat(clause.ActionKeys, clause.IfKeys[1:]), []string{"$defs/actions"}},
	{"", 0, clause.OpeningKeys, []string{"$defs/opening"}},
	{"", 0, clause.GuardKeys, []string{"$defs/condition"}},
	{"", 0, clause.BranchKeys, []string{"$defs/branch"}},
}

// TestTheDocumentHasEveryKey compares the tables of DEFINITION.md, "Keys", with
// those of the parser. Their order is the same, too.
func TestTheDocumentHasEveryKey(t *testing.T) {
	for _, c := range keyTables {
		if c.heading == "" {
			continue
		}
		documented := firstCells(t, c.heading, c.table)
		assert.True(t, slices.Equal(documented, c.keys), "%s, table %d: DEFINITION.md has\n%q, the parser knows\n%q", c.heading, c.table, documented, c.keys)
	}
	if all := len(markdown.Tables(markdown.Section(readDocument(t), "Keys"))); all != 26 { // NB: those of tones and styles are words, compared below
		t.Errorf("%d tables below Keys, 26 are compared", all)
	}
}

// wordTables are the words of a key, with the table of DEFINITION.md that has the key, and the places of the schema for editors.
var wordTables = []struct {
	heading, key string
	words        []string
	schema       []string
}{
	{"Top of the file", "unmatched", keysIn(clause.UnmatchedWords), []string{"$defs/unmatched"}},
	{"Event declarations", "unmatched", keysIn(clause.UnmatchedWords), nil},
	{"Top of the file", "semantics", keysIn(clause.SemanticsWords), []string{"properties/semantics"}},
	{"Event declarations", "into", keysIn(clause.IntoWords), []string{"$defs/into"}},
	{"Event declarations", "apply", keysIn(clause.ApplyWords), []string{"$defs/apply"}},
	{"Event declarations", "style", keysIn(clause.StyleWords), []string{"$defs/event/properties/style"}},
	{"State machines and states", "tone", keysIn(clause.ToneWords), []string{"$defs/node/properties/tone"}},
	{"State machines and states", "type", keysIn(clause.NodeTypes), []string{"$defs/node/properties/type"}},
	{"State machines and states", "history", keysIn(clause.HistoryTypes), []string{"$defs/node/properties/history"}},
	{"", "missed", keysIn(clause.MissedWords), []string{"$defs/schedule/properties/missed"}},
}

func keysIn[T any](words map[string]T) []string { return slices.Sorted(maps.Keys(words)) }

// TestTheDocumentHasEveryWord: the words of a key stand in its row.
func TestTheDocumentHasEveryWord(t *testing.T) {
	for _, c := range wordTables {
		if c.heading == "" {
			continue
		}
		found := false
		for _, row := range markdown.Tables(markdown.Section(readDocument(t), c.heading))[0].Rows {
			if row[0] != c.key {
				continue
			}
			found = true
			for _, word := range c.words {
				assert.Contains(t, row[1], "`"+word+"`", "%v %v %v", c.heading, c.key, word)
			}
		}
		assert.True(t, found, "%s: no row about %s", c.heading, c.key)
	}
	for table, words := range [][]string{keysIn(clause.ToneWords), keysIn(clause.StyleWords)} {
		got := slices.Sorted(slices.Values(firstCells(t, "Tones and styles", table)))
		assert.True(t, slices.Equal(got, words), "tones and styles: got %q, want %q", got, words)
	}
	assert.Len(t, firstCells(t, "Unmatched events", 0), len(clause.UnmatchedWords), "unmatched events")
}

func parseExample(t *testing.T) (text string, parsed *Parsed) {
	t.Helper()
	section := markdown.Section(readDocument(t), "A complete example")
	yaml, json := markdown.Blocks(section, "yaml"), markdown.Blocks(section, "json")
	require.True(t, len(yaml) == 1 && len(json) == 1, "%d blocks of yaml and %d of json, want one each", len(yaml), len(json))
	parsed, err := newParser(t).Parse(Source{File: "invoice-approval.yaml", Text: []byte(yaml[0]), Read: func(name string) ([]byte, error) {
		if name != "invoice.schema.json" {
			return nil, fmt.Errorf("file %q is not there", name)
		}
		return []byte(json[0]), nil
	}})
	require.NoError(t, err)
	return yaml[0], parsed
}

func TestTheCompleteExampleHasNoFaults(t *testing.T) {
	text, parsed := parseExample(t)
	assert.Empty(t, parsed.Warnings, "warnings: %v", parsed.Warnings)
	tree, err := document.Parse("w.yaml", []byte(text))
	require.NoError(t, err)
	has := map[string]bool{}
	var walk func(n *document.Node)
	walk = func(n *document.Node) {
		for _, f := range n.Fields {
			has[f.Key.Text] = true
			walk(f.Value)
		}
		for _, item := range n.Items {
			walk(item)
		}
	}
	walk(tree)
	for _, of := range keyTables {
		for _, key := range of.keys {
			assert.True(t, has[key], "the complete example has no %q", key)
		}
	}
}

// TestTheFaultsOfTheDocumentExist: each message of DEFINITION.md, "Faults", stands in the scripts of TestFault.
func TestTheFaultsOfTheDocumentExist(t *testing.T) {
	scripts, err := filepath.Glob("testdata/fault/*.txt")
	require.NoError(t, err)
	scripts = append(scripts, "testdata/warning/warning.txt")
	var produced strings.Builder
	for _, file := range scripts {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		produced.Write(text)
	}
	for _, heading := range []string{"Faults of the text", "Faults of the chart", "Faults of expressions", "Warnings"} {
		for _, message := range firstCells(t, heading, 0) {
			assert.Contains(t, produced.String(), message, "%s: no test produces", heading)
		}
	}
}

// TestTheLimitsOfTheDocument compares those limits that this package has.
func TestTheLimitsOfTheDocument(t *testing.T) {
	documented := map[string]string{}
	for _, row := range markdown.Tables(markdown.Section(readDocument(t), "Limits"))[0].Rows {
		documented[row[0]] = strings.ReplaceAll(row[1], ",", "")
	}
	for limit, n := range map[string]int{
		"nesting of a file and of data":                                      data.MaxDepth,
		"states, with one more for each state machine and one for the whole": parse.MaxNodes,
		"columns":                           clause.MaxColumns,
		"indexes":                           clause.MaxIndexes,
		"schedules":                         clause.MaxSchedules,
		"name of a workflow, in characters": clause.MaxLabel,
		"address of a webhook, in bytes":    clause.WebhookURLMax,
		"retries of a webhook or a job":     clause.RetryLimitMax,
		"types of jobs":                     clause.MaxJobTypes,
		"languages of a text":               chart.MaxLanguages,
		"length of a label, and of a title as it is shown, in characters":  clause.MaxLabel,
		"actions, named ones counted where they are used":                  parse.MaxParsedActions,
		"named actions inside each other":                                  parse.MaxActionDepth,
		"cost of a visit to everything in a schema":                        schema.MaxVisitCost,
		"mappings and lists in a schema, with the files that it refers to": schemacost.ObjectsMax,
		"bytes of all expressions of a file, plus 40 for each":             clause.MaxExpressionBytes,
		"instructions of all regular expressions of a file together":       clause.MaxInstructions,
		"mappings and lists in all schemas of a file together":             clause.MaxSchemaObjects,
		"cost of a visit to everything in all schemas of a file together":  clause.MaxSchemasCost,
		"instructions of a regular expression":                             pattern.SizeMax,
	} {
		assert.Equal(t, fmt.Sprint(n), documented[limit], "%s: DEFINITION.md, %d", limit, n)
	}
	running := map[string]string{}
	for _, row := range markdown.Tables(markdown.Section(readDocument(t), "Limits"))[1].Rows {
		running[row[0]] = row[1]
	}
	for limit, want := range map[string]string{
		"`svcPublic` and `svcPrivate` together": mebibytes(MaxDataBytes),
		"microsteps of an event":                grouped(fault.MaxMicrosteps),
		"actions of an event":                   grouped(fault.MaxActions),
		"raised events that wait":               grouped(fault.MaxWaiting),
		"data of raised events that wait":       mebibytes(fault.MaxWaitingBytes),
		"cost of an event":                      grouped(fault.MaxCost),
		"deliveries of an event":                grouped(fault.MaxDeliveries),
		"bytes of all deliveries of an event":   mebibytes(fault.MaxDeliveryBytes),
		"recipients of a mail":                  grouped(chart.MaxMailTo),
		"timers":                                grouped(fault.MaxTimers),
		"data of all timers":                    mebibytes(fault.MaxTimerBytes),
		"children that run, and jobs, together": grouped(fault.MaxChildren),
		"data of all jobs":                      mebibytes(fault.MaxJobBytes),
		"instances above a child":               grouped(MaxDepth),
	} {
		assert.Equal(t, want, running[limit], "%s: DEFINITION.md", limit)
	}
	section := markdown.Section(readDocument(t), "Bounds of one event")
	for what, n := range map[string]int{"microsteps": fault.MaxMicrosteps, "actions": fault.MaxActions, "raised events": fault.MaxWaiting, "units": fault.MaxCost} {
		want := grouped(n) + " " + what
		assert.Contains(t, section, want, "bounds of one event: DEFINITION.md does")
	}
}

func mebibytes(n int) string { return fmt.Sprintf("%d MiB", n>>20) }

func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// TestTheVariablesOfTheDocument: each row of DEFINITION.md, "Variables", compiles with each of its fields.
func TestTheVariablesOfTheDocument(t *testing.T) {
	env := newParser(t).of.Env
	known := []string{}
	for _, row := range markdown.Tables(markdown.Section(readDocument(t), "Variables"))[0].Rows {
		if row[0] == "const" {
			continue
		}
		known = append(known, row[0])
		if _, err := env.Compile(row[0]); err != nil {
			t.Errorf("%s: %v", row[0], err)
		}
		for field := range strings.SplitSeq(row[1], ", ") {
			if field = strings.Trim(field, "`"); field == "" || field == "free" {
				continue
			}
			if _, err := env.Compile(row[0] + "." + field); err != nil {
				t.Errorf("%s.%s: %v", row[0], field, err)
			}
		}
	}
	assert.True(t, slices.Equal(known, clause.ReservedVariables), "DEFINITION.md has the variables %q, expressions know %q", known, clause.ReservedVariables)
}
