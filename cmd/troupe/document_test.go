package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/homedir"
	"troupe/cmd/internal/metric"
)

const homeDocument = "HOME.md"

func readDocument(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// section returns what stands below a heading of the second level, to the next.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, below, found := strings.Cut(text, "\n## "+heading+"\n")
	require.True(t, found, "%s has no heading %q", homeDocument, heading)
	below, _, _ = strings.Cut(below, "\n## ")
	return below
}

// tableRow is a row of a table with three columns whose first begins with code.
var tableRow = regexp.MustCompile("(?m)^\\| (`.*?) \\| (.*?)\\| (.*?) \\|$")

// TestHomeHasEverySetting holds the tables of settings to the program: key, default
// and meaning. `troupe config` shows them all.
func TestHomeHasEverySetting(t *testing.T) {
	documented := tableRow.FindAllString(section(t, readDocument(t, homeDocument), "Settings"), -1)
	_, printed, _ := clitest.Invoke("config", "--home", t.TempDir())
	var known []string
	for _, s := range config.New().Settings {
		key, value := config.KeyName(s.Name), s.Value.String()
		assert.True(t, regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(key)+` .*`+regexp.QuoteMeta(s.Help)+`$`).MatchString(printed), key)
		if value != "" {
			value = "`" + value + "`"
		}
		known = append(known, "| `"+key+"` | "+value+" | "+s.Help+" |")
	}
	compare(t, "Settings", documented, known)
}

// compare reports the rows of a section that the program does not have, and those
// that it has besides.
func compare(t *testing.T, heading string, documented, known []string) {
	t.Helper()
	for _, row := range documented {
		assert.Contains(t, known, row, "%s, %q has a row that is not the program's", homeDocument, heading)
	}
	for _, row := range known {
		assert.Contains(t, documented, row, "%s, %q lacks the row", homeDocument, heading)
	}
	assert.Len(t, documented, len(known), "%v %v", homeDocument, heading)
}

// TestHomeHasEveryMetric holds the table of metrics to the program: name, type, labels and meaning. Package metric holds the
// program to what it answers.
func TestHomeHasEveryMetric(t *testing.T) {
	var known []string
	documented := regexp.MustCompile("(?m)^\\| `troupe_.* \\|$").FindAllString(section(t, readDocument(t, homeDocument), "Metrics"), -1)
	for _, d := range metric.Descriptions() {
		var labels []string
		for _, l := range d.Labels {
			labels = append(labels, "`"+l+"`")
		}
		known = append(known, fmt.Sprintf("| `%s` | %s | %s | %s |", d.Name, d.Type, strings.Join(labels, ", "), d.Help))
	}
	compare(t, "Metrics", documented, known)
}

var (
	command  = regexp.MustCompile("`(troupe [^`]*)`")
	longFlag = regexp.MustCompile("`--([a-z.-]+)`")
)

// TestHomeHasEveryCommand holds the table of commands to the program: each command
// with its arguments and all its flags, and no others.
func TestHomeHasEveryCommand(t *testing.T) {
	text := readDocument(t, homeDocument)
	connection := flagsIn(section(t, text, "Where commands connect"))
	var documented []string
	for _, row := range tableRow.FindAllStringSubmatch(section(t, text, "Commands"), -1) {
		flags := flagsIn(row[2])
		if rest, found := strings.CutPrefix(row[2], "connection "); found {
			flags = append(flagsIn(rest), connection...)
		}
		if strings.HasPrefix(strings.TrimSpace(row[2]), "every setting") {
			config.New().Flags.VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
		}
		for _, name := range command.FindAllStringSubmatch(row[1], -1) {
			documented = append(documented, commandRow(name[1], flags))
		}
	}
	root := newRoot()
	root.InitDefaultCompletionCmd()
	var known []string
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			visit(below)
		}
		var flags []string
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" {
				flags = append(flags, f.Name)
			}
		})
		if c == root || c.HasSubCommands() && len(flags) == 0 {
			return // a group
		}
		known = append(known, commandRow(strings.TrimSuffix(c.UseLine(), " [flags]"), flags))
	}
	visit(root)
	compare(t, "Commands", documented, known)
}

func flagsIn(text string) []string {
	var flags []string
	for _, f := range longFlag.FindAllStringSubmatch(text, -1) {
		flags = append(flags, f[1])
	}
	return flags
}

func commandRow(use string, flags []string) string {
	flags = slices.Compact(slices.Sorted(slices.Values(flags)))
	return "`" + use + "` --" + strings.Join(flags, " --")
}

// markedFile is an example of a file, behind a mark with the names that it has.
var markedFile = regexp.MustCompile("(?s)<!-- file: ([^\n]*) -->\n```(?:yaml|json)\n(.*?)```\n")

// notHere are warnings of exports of the example's workflows, which the home of this document does not have.
var notHere = regexp.MustCompile(`(?m)^warning: troupe.yaml: exports, .* is not in the home .*\n`)

// TestHomeExamplesAreRight makes a home of all examples and has the program check it.
// Each example of troupe.yaml is checked in its turn.
func TestHomeExamplesAreRight(t *testing.T) {
	text := readDocument(t, homeDocument)
	examples := markedFile.FindAllStringSubmatch(text, -1)
	marks := strings.Count(text, "<!-- file: ")
	require.True(t, len(examples) != 0 && len(examples) == marks, "%s has %d marks and %d examples behind them", homeDocument, marks, len(examples))
	dir := t.TempDir()
	var settings []string
	for _, example := range examples {
		for _, name := range strings.Fields(example[1]) {
			if name == homedir.SettingsFile {
				settings = append(settings, example[2])
				continue
			}
			clitest.PutFile(t, dir, name, example[2])
		}
	}
	for i, example := range append(settings, "") {
		t.Run(fmt.Sprintf("settings %d", i), func(t *testing.T) {
			if strings.Contains(example, "accessKey:") { // the example says that its secret stands elsewhere
				t.Setenv("TROUPE_REPOSITORY_SECRET_KEY", "secret")
			}
			clitest.PutFile(t, dir, homedir.SettingsFile, example)
			code, stdout, stderr := clitest.Invoke("check", "--home", dir)
			stdout = notHere.ReplaceAllString(stdout, "")
			assert.True(t, code == cli.ExitDone && stdout == "", "got code %d\n%s%swith\n%s", code, stdout, stderr, example)
		})
	}
	// The control: the same home with a slip in one of the examples.
	clitest.Edit(t, dir, "rights.yaml", "inspector", "inspecter")
	code, stdout, _ := clitest.Invoke("check", "--home", dir)
	assert.True(t, code == cli.ExitFailed && strings.Contains(stdout, "inspecter"), "a slip in rights.yaml: got code %d\n%s", code, stdout)
}
