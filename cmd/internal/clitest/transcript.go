package clitest

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"troupe/gateway/servertest"
)

// Scene is what the commands of a transcript work on: a folder, perhaps a service, and the names of what changes with every run.
type Scene struct {
	*testing.T
	Service *servertest.Server

	names map[string]string // by the value that a name stands for, such as $1 for the first id
	ids   int
}

// Commands are those that a package's transcripts have besides.
type Commands map[string]func(s *Scene, cmd *datadriven.TestData) string

// Transcripts plays the scripts below a folder, each in an empty folder of its own:
//
//	run                  command lines, each with what it prints, then what it complains of ("! "), then its exit code if it
//	                     is not 0. Lines that begin with "< " are the standard input of the line above: a line of it, or a quoted
//	                     text of Go. "| grep RE" after a command keeps lines, "| match RE" what fits alone, "| count RE" its number;
//	                     "| into FILE" writes a file.
//	env                  variables of the environment, NAME=value
//	file NAME            a file with the input as its text; remove NAME; move FROM TO; mode NAME 0640, or without a mode what it is
//	edit NAME            replaces the text after "-" by that after "+" below it
//	home [NAME]          a home like the example; small [NAME] without the forms of orders
//	service, notice      the service that the commands ask; $1 is the instance of notice
//	instance EVENT…      an instance with the input as its svcPublic; send ID EVENT
//	revise NODE NAME     another version of the workflow
//	fail OPERATION       faults for the next requests, a line each: STATUS CODE RETRY-AFTER done
//	requests HEADER      what the service was asked, with a header
//	nobody, taken        names an address $nobody where nobody listens, $taken where somebody else does
//	ls DIR, cat FILE     what is there; link FROM TO makes it lead there
//
// Ids are $1, $2, … in the order in which they are first seen, the folder is $dir, and the cursor seen last is $cursor, also in
// command lines. The secret of a credential is shown as .SECRET, and a time without
// milliseconds, which no test decides, as <time>.
func Transcripts(t *testing.T, folder string, more Commands) {
	t.Helper()
	folder, err := filepath.Abs(folder)
	require.NoError(t, err)
	Tree() // before the folder is another one
	datadriven.Walk(t, folder, func(t *testing.T, path string) {
		Isolated(t)
		t.Chdir(t.TempDir())
		dir, err := os.Getwd()
		require.NoError(t, err)
		s := &Scene{T: t, names: map[string]string{dir: "$dir"}}
		datadriven.RunTest(t, path, func(_ *testing.T, cmd *datadriven.TestData) string { return s.shown(s.do(cmd, more)) })
	})
}

func (s *Scene) do(cmd *datadriven.TestData, more Commands) (text string) {
	var args []string
	for _, a := range cmd.CmdArgs {
		args = append(args, s.Meant(a.String()))
	}
	input := s.Meant(cmd.Input)
	switch cmd.Cmd {
	case "run":
		return s.run(input)
	case "home", "small":
		made := ExampleHome(s.T)
		if cmd.Cmd == "small" {
			made = SmallHome(s.T)
		}
		MustRename(s.T, made, cmp.Or(strings.Join(args, ""), "home"))
	case "service":
		s.Service = StartService(s.T)
	case "notice":
		return StartNotice(s.T)
	case "instance":
		return s.Service.Create(cmp.Or(input, "{}"), args...)
	case "send":
		s.Service.Send(args[0], args[1])
	case "revise":
		s.Service.Revise(args[0], args[1])
	case "fail":
		for line := range strings.SplitSeq(input, "\n") {
			words := append(strings.Fields(line), "", "", "")
			status, err := strconv.Atoi(words[0])
			require.NoError(s, err)
			s.Service.Fail(args[0], servertest.Fault{Status: status, Code: words[1], RetryAfter: words[2], Done: words[3] == "done"})
		}
	case "requests":
		for _, r := range s.Service.Requests() {
			text += r.Method + " " + r.Path + " " + r.Header.Get(args[0]) + "\n"
		}
		return text
	case "nobody":
		s.Call("$nobody", servertest.Nobody(s))
	case "taken":
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(s, err)
		s.Cleanup(func() { _ = taken.Close() })
		s.Call("$taken", taken.Addr().String())
	default:
		if do := more[cmd.Cmd]; do != nil {
			return do(s, cmd)
		}
		return s.file(cmd, args, input)
	}
	return ""
}

// file does what is about files and the environment.
func (s *Scene) file(cmd *datadriven.TestData, args []string, input string) (text string) {
	switch cmd.Cmd {
	case "env":
		for line := range strings.SplitSeq(input, "\n") {
			name, value, _ := strings.Cut(line, "=")
			s.Setenv(name, value)
		}
	case "file":
		if input != "" {
			input += "\n"
		}
		PutFile(s.T, "", args[0], input)
	case "remove":
		RemoveFile(s.T, "", args[0])
	case "move":
		MustRename(s.T, args[0], args[1])
	case "mode":
		if len(args) == 1 {
			info, err := os.Stat(args[0])
			require.NoError(s, err)
			return info.Mode().String()
		}
		mode, err := strconv.ParseUint(args[1], 8, 32)
		require.NoError(s, err)
		require.NoError(s, os.Chmod(args[0], os.FileMode(mode)))
	case "edit":
		for _, change := range regexp.MustCompile(`(?m)((?:^-.*\n?)+)((?:^\+.*\n?)*)`).FindAllStringSubmatch(input+"\n", -1) {
			text := func(i int) string {
				return regexp.MustCompile("(?m)^[-+]").ReplaceAllString(strings.TrimSuffix(change[i], "\n"), "")
			}
			Edit(s.T, "", args[0], text(1), text(2))
		}
	case "ls":
		entries, err := os.ReadDir(args[0])
		require.NoError(s, err)
		for _, e := range entries {
			text += e.Name() + "\n"
		}
		return text
	case "cat":
		file, err := os.ReadFile(args[0])
		require.NoError(s, err)
		return string(file)
	case "link":
		require.NoError(s, os.Symlink(args[1], args[0]))
	default:
		require.Fail(s, "there is no such command", cmd.Pos)
	}
	return ""
}

// Call gives a value a name, in what is shown and in command lines.
func (s *Scene) Call(name, value string) { s.names[value] = name }

var (
	anID       = regexp.MustCompile(`\b01[0-9A-HJKMNP-TV-Z]{24}\b|\b(?:tok|ses)_[a-z2-7]{16}\b|\b[0-9a-f]{32}\b`)
	credential = regexp.MustCompile(`\b((?:tok|ses)_[a-z2-7]{16})\.[A-Za-z0-9_-]{43}\b`)
	cursor     = regexp.MustCompile(`--cursor (\S+) the next page`)
	aTime      = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	aHolder    = regexp.MustCompile(` by process \d+`) // of a lock, on systems that say it
)

// shown is a text with names in place of what changes with every run. Columns stay below each other.
func (s *Scene) shown(text string) string {
	text = aHolder.ReplaceAllString(text, "")
	text = aTime.ReplaceAllString(credential.ReplaceAllString(text, "$1.SECRET"), "<time>              ")
	if next := cursor.FindStringSubmatch(text); next != nil {
		maps.DeleteFunc(s.names, func(_, name string) bool { return name == "$cursor" })
		s.Call("$cursor", next[1])
	}
	for _, id := range anID.FindAllString(text, -1) {
		if s.names[id] == "" {
			s.ids++
			s.Call("$"+strconv.Itoa(s.ids), id)
		}
	}
	for value, name := range s.names {
		pad := strings.Repeat(" ", max(len(value)-len(name), 0))
		text = regexp.MustCompile(regexp.QuoteMeta(value)+`((-\d+)*)  `).ReplaceAllString(text, strings.ReplaceAll(name, "$", "$$")+"${1}"+pad+"  ")
		text = strings.ReplaceAll(text, value, name)
	}
	return text
}

// Meant is a text with the values of its names.
func (s *Scene) Meant(text string) string {
	byLength := slices.SortedFunc(maps.Keys(s.names), func(a, b string) int { return len(s.names[b]) - len(s.names[a]) })
	for _, value := range byLength {
		text = strings.ReplaceAll(text, s.names[value], value)
	}
	return text
}

// run runs command lines.
func (s *Scene) run(input string) string {
	var all strings.Builder
	lines := strings.Split(input, "\n")
	isOne := !slices.ContainsFunc(lines[1:], func(line string) bool { return !strings.HasPrefix(line, "<") })
	for i, line := range lines {
		if strings.HasPrefix(line, "<") {
			continue
		}
		var stdin strings.Builder
		for _, next := range lines[i+1:] {
			given, ok := strings.CutPrefix(next, "< ")
			if !ok {
				break
			}
			if text, err := strconv.Unquote(given); err == nil {
				given = text
			} else {
				given += "\n"
			}
			stdin.WriteString(given)
		}
		if !isOne {
			fmt.Fprintf(&all, "$ %s\n", line)
		}
		line, filter, _ := strings.Cut(line, " | ")
		code, stdout, stderr := InvokeWith(stdin.String(), Words(line)...)
		all.WriteString(filtered(s.T, stdout, filter))
		for line := range strings.Lines(stderr) {
			all.WriteString("! " + line)
		}
		if code != 0 {
			fmt.Fprintf(&all, "exit %d\n", code)
		}
	}
	return all.String()
}

// filtered is what a filter leaves of a text.
func filtered(t *testing.T, text, filter string) (left string) {
	if filter == "" {
		return text
	}
	kind, pattern, _ := strings.Cut(filter, " ")
	re, err := regexp.Compile(pattern)
	require.NoError(t, err)
	switch kind {
	case "grep":
		for line := range strings.Lines(text) {
			if re.MatchString(line) {
				left += line
			}
		}
	case "match":
		for _, found := range re.FindAllString(text, -1) {
			left += found + "\n"
		}
	case "into":
		PutFile(t, "", pattern, text)
	case "count":
		left = strconv.Itoa(len(re.FindAllString(text, -1))) + "\n"
	default:
		require.Fail(t, "there is no filter "+kind)
	}
	return left
}

var quoted = regexp.MustCompile(`'([^']*)'|("(?:[^"\\]|\\.)*")|([^\s'"]+)|(\s+)`)

// Words takes a command line apart as a shell does, with words in single quotes, or in double ones as in Go.
func Words(line string) (all []string) {
	all = []string{} // NB: with nil the program takes the arguments of this process
	word, open := "", false
	for _, part := range quoted.FindAllStringSubmatch(line, -1) {
		if part[4] != "" {
			if open {
				all = append(all, word)
			}
			word, open = "", false
			continue
		}
		text, _ := strconv.Unquote(part[2])
		word, open = word+part[1]+text+part[3], true
	}
	if open {
		all = append(all, word)
	}
	return all
}
