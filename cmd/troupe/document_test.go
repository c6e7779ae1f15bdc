package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const homeDocument = "HOME.md"

// readDocument returns a document of this folder.
func readDocument(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section returns what stands below a heading of the second level, to the next.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, below, found := strings.Cut(text, "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", homeDocument, heading)
	}
	below, _, _ = strings.Cut(below, "\n## ")
	return below
}

// tableRow is a row of a table with three columns whose first begins with code.
var tableRow = regexp.MustCompile("(?m)^\\| (`.*?) \\| (.*?)\\| (.*?) \\|$")

// TestHomeHasEverySetting holds the tables of settings to what `troupe config`
// prints: key, default and meaning, in the tables and in the program alike.
func TestHomeHasEverySetting(t *testing.T) {
	documented := tableRow.FindAllString(section(t, readDocument(t, homeDocument), "Settings"), -1)
	code, printed, stderr := invoke("config", "--home", t.TempDir())
	if code != exitDone {
		t.Fatal(stderr)
	}
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	var ends []int // where the columns begin
	for _, column := range []string{"VALUE", "SOURCE", "ENVIRONMENT", "MEANING"} {
		ends = append(ends, strings.Index(lines[0], column))
	}
	var known []string
	for _, line := range lines[1:] {
		key, value, meaning := strings.TrimSpace(line[:ends[0]]), strings.TrimSpace(line[ends[0]:ends[1]]), line[ends[3]:]
		if key == "home" { // the test gives another
			value = newConfig().flags.Lookup("home").DefValue
		}
		if value != "" {
			value = "`" + value + "`"
		}
		known = append(known, "| `"+key+"` | "+value+" | "+meaning+" |")
	}
	compare(t, "Settings", documented, known)
}

// compare reports the rows of a section that the program does not have, and those
// that it has besides.
func compare(t *testing.T, heading string, documented, known []string) {
	t.Helper()
	for _, row := range documented {
		if !slices.Contains(known, row) {
			t.Errorf("%s, %q has a row that is not the program's:\n%s", homeDocument, heading, row)
		}
	}
	for _, row := range known {
		if !slices.Contains(documented, row) {
			t.Errorf("%s, %q lacks the row\n%s", homeDocument, heading, row)
		}
	}
	if len(documented) != len(known) {
		t.Errorf("%s, %q has %d rows, the program has %d", homeDocument, heading, len(documented), len(known))
	}
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
		if strings.TrimSpace(row[2]) == "every setting" {
			newConfig().flags.VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
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
		if c.HasSubCommands() {
			return // a group
		}
		var flags []string
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" {
				flags = append(flags, f.Name)
			}
		})
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

// commandRow is a command with its flags in order.
func commandRow(use string, flags []string) string {
	flags = slices.Compact(slices.Sorted(slices.Values(flags)))
	return "`" + use + "` --" + strings.Join(flags, " --")
}

// markedFile is an example of a file, behind a mark with the names that it has.
var markedFile = regexp.MustCompile("(?s)<!-- file: ([^\n]*) -->\n```(?:yaml|json)\n(.*?)```\n")

// TestHomeExamplesAreRight makes a home of all examples and has the program check it.
// Each example of troupe.yaml is checked in its turn.
func TestHomeExamplesAreRight(t *testing.T) {
	text := readDocument(t, homeDocument)
	examples := markedFile.FindAllStringSubmatch(text, -1)
	if marks := strings.Count(text, "<!-- file: "); len(examples) == 0 || len(examples) != marks {
		t.Fatalf("%s has %d marks and %d examples behind them", homeDocument, marks, len(examples))
	}
	dir := t.TempDir()
	var settings []string
	for _, example := range examples {
		for _, name := range strings.Fields(example[1]) {
			if name == settingsFile {
				settings = append(settings, example[2])
				continue
			}
			putFile(t, dir, name, example[2])
		}
	}
	for i, example := range append(settings, "") {
		t.Run(fmt.Sprintf("settings %d", i), func(t *testing.T) {
			if strings.Contains(example, "accessKey:") { // the example says that its secret stands elsewhere
				t.Setenv("TROUPE_REPOSITORY_SECRET_KEY", "secret")
			}
			putFile(t, dir, settingsFile, example)
			if code, stdout, stderr := invoke("check", "--home", dir); code != exitDone || stdout != "" {
				t.Errorf("got code %d\n%s%swith\n%s", code, stdout, stderr, example)
			}
		})
	}
	// The control: the same home with a slip in one of the examples.
	file := filepath.Join(dir, "rights.yaml")
	rights, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(rights, []byte("inspector"), []byte("inspecter")), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, _ := invoke("check", "--home", dir); code != exitFailed || !strings.Contains(stdout, "inspecter") {
		t.Errorf("a slip in rights.yaml: got code %d\n%s", code, stdout)
	}
}
