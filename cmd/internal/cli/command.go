// Package cli is what all commands of the program have alike: exit codes, arguments, groups, the forms of a result, the
// values of flags, suggestions for a mistyped word, and the line on a terminal that is written again and again. It
// knows no service, no home and no setting.
package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"troupe/statemachine/document"
)

// Exit codes (cmd/troupe/HOME.md, "Exit codes and output").
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
)

type usageError struct{ error }

// Usage is the error of a command line that makes no sense.
func Usage(err error) error { return usageError{err} }

// Usagef is Usage of a message.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

type faultyError struct{ error }

// Faulty is the error of a command whose files cannot be used: its exit code is that of wrong usage.
func Faulty(err error) error { return faultyError{err} }

// Run carries out one command line and returns the exit code.
func Run(root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	var usage usageError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &usage):
		hint := "'troupe --help' or 'troupe COMMAND --help'"
		if cmd != root {
			hint = "'" + cmd.CommandPath() + " --help'"
		}
		fmt.Fprintf(stderr, "troupe: %v\nRun %s.\n", err, hint)
		return ExitUsage
	}
	fmt.Fprintf(stderr, "troupe: %v\n", err)
	if faulty := (faultyError{}); errors.As(err, &faulty) {
		return ExitUsage
	}
	return ExitFailed
}

// EndSignals are those that end a command in order.
func EndSignals() []os.Signal {
	ends := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	return ends
}

// NewRoot is the whole command line: the commands below one root.
func NewRoot(short, version string, commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:           "troupe",
		Short:         short,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asked, _ := cmd.Flags().GetBool("version"); asked {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), version)
				return err
			}
			showHelp(cmd)
			return Usagef("no command given")
		},
	}
	// NB: not by cobra's Version: its text is a template, for which the linker would keep every method of every type
	// (package gateway/hypertext).
	root.Flags().BoolP("version", "v", false, "version for troupe")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(commands...)
	complete(root)
	return root
}

// Arrange lists commands of the root below a title in its help. It panics when one is missing.
func Arrange(root *cobra.Command, title string, names ...string) {
	root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
	for _, name := range names {
		switch name {
		case "help":
			root.SetHelpCommandGroupID(title)
		case "completion":
			root.SetCompletionCommandGroupID(title)
		default:
			found, _, err := root.Find([]string{name})
			if err != nil || found == root {
				panic("there is no command " + name)
			}
			found.GroupID = title
		}
	}
}

// flagError says what is wrong with a flag, unless the command before it is what is wrong.
func flagError(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		if err := Arguments(cmd, words); err != nil {
			return err
		}
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if near := document.Closest(unknown.GetSpecifiedName(), known); near != "" {
			return Usagef("%w; did you mean --%s?", err, near)
		}
	}
	return Usage(err)
}

// complete has each command check its arguments, unless it does so itself, and show its summary above its description.
func complete(cmd *cobra.Command) {
	if cmd.Args == nil {
		cmd.Args = Arguments
	}
	if cmd.Long != "" {
		cmd.Long = cmd.Short + ".\n\n" + cmd.Long
	}
	for _, below := range cmd.Commands() {
		complete(below)
	}
}

func showHelp(cmd *cobra.Command) {
	cmd.SetOut(cmd.ErrOrStderr())
	_ = cmd.Help() // what is left to do is to end with an error anyway
}

// Arguments takes the arguments that the command's Use names: NAME, [NAME] for one that may be missing, NAME... for one
// or more.
func Arguments(cmd *cobra.Command, args []string) error {
	names := strings.Fields(cmd.Use)[1:]
	usage := strings.Join(append([]string{cmd.CommandPath()}, names...), " ")
	most := len(names)
	for i, name := range names {
		if strings.HasSuffix(strings.TrimSuffix(name, "]"), "...") {
			most = max(most, len(args))
		}
		if i >= len(args) && !strings.HasPrefix(name, "[") {
			return Usagef("%s is missing: %s", strings.TrimSuffix(name, "..."), usage)
		}
	}
	switch {
	case len(args) <= most:
		return nil
	case cmd.HasSubCommands():
		var known []string
		for _, below := range cmd.Commands() {
			known = append(known, below.Name())
			for _, deeper := range below.Commands() {
				if deeper.Name() == args[0] {
					return Usagef("unknown command %q for %q; did you mean %s?", args[0], cmd.CommandPath(), deeper.CommandPath())
				}
			}
		}
		return Usagef("unknown command %q for %q%s", args[0], cmd.CommandPath(), DidYouMean(args[0], known))
	}
	return Usagef("unexpected argument %q: %s", args[most], usage)
}

// Group is a command that only has others below it.
func Group(name, short, example string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use: name, Short: short, Example: example,
		RunE: func(cmd *cobra.Command, _ []string) error {
			showHelp(cmd)
			return Usagef("%s: no command given", name)
		},
	}
	g.AddCommand(commands...)
	return g
}

// CompleteFlag has the shell complete a flag.
func CompleteFlag(cmd *cobra.Command, flag string, known func() []string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return known(), cobra.ShellCompDirectiveNoFileComp
	}); err != nil { // the flag is not there, or has it already
		panic(err)
	}
}

// OneOf has the shell complete a flag with one of the words.
func OneOf(cmd *cobra.Command, flag string, words ...string) {
	CompleteFlag(cmd, flag, func() []string { return words })
}

// CommandTimeMax bounds a command, however slow the server or the disk is.
const CommandTimeMax = 30 * time.Second

// ReaderLanguage is the language of the environment as a tag of BCP 47 ("de-AT" of "de_AT.UTF-8"), empty for none.
func ReaderLanguage() string {
	locale := cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG"))
	locale, _, _ = strings.Cut(locale, ".")
	locale, _, _ = strings.Cut(locale, "@")
	if locale == "C" || locale == "POSIX" {
		return ""
	}
	return strings.ReplaceAll(locale, "_", "-")
}

// ReaderLanguages is it as a list.
func ReaderLanguages() []string {
	if language := ReaderLanguage(); language != "" {
		return []string{language}
	}
	return nil
}

// DidYouMean is a suggestion behind an error; empty when no word is close.
func DidYouMean(word string, known []string) string {
	if text := Suggestion(word, known); text != "" {
		return "; " + text
	}
	return ""
}

// Suggestion asks for the known word that is meant; empty when none is near, or the word is known itself: then
// something else is wrong.
func Suggestion(word string, known []string) string {
	if near := document.Closest(word, known); near != "" && !slices.Contains(known, word) {
		return "did you mean " + near + "?"
	}
	return ""
}

// Plural counts things whose name takes an s.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// ShellWord is a word as it can be typed into a shell.
func ShellWord(s string) string {
	if strings.ContainsAny(s, " \t\n'\"$&|;<>(){}*?!\\`") || s == "" {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

var errInputTooLarge = errors.New("is larger than 16 MiB")

const inputBytesMax = 16 << 20

// JsonInput returns the JSON that an argument names: itself, @file, or - for standard input.
func JsonInput(cmd *cobra.Command, flag, value string) (json.RawMessage, error) {
	text, err := []byte(value), error(nil)
	switch name, isFile := strings.CutPrefix(value, "@"); {
	case value == "":
		return nil, nil
	case value == "-":
		text, err = ReadInput(cmd.InOrStdin())
	case isFile:
		text, err = ReadInputFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	text = bytes.TrimSpace(text)
	if !json.Valid(text) {
		return nil, Usagef("--%s: must be JSON, @file or -: %w", flag, jsonFault(text))
	}
	return text, nil
}

// ReadInput reads a stream of at most 16 MiB to its end.
func ReadInput(in io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, inputBytesMax+1))
	if err == nil && len(text) > inputBytesMax {
		err = errInputTooLarge
	}
	return text, err
}

// ReadInputFile is ReadInput of a file.
func ReadInputFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return ReadInput(file)
}

func jsonFault(text []byte) error {
	var v any
	err := json.Unmarshal(text, &v)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	at := min(max(int(syntax.Offset)-1, 0), len(text)) // NB: the offset is behind what is wrong
	if strings.Contains(syntax.Error(), "unexpected end") {
		at = len(text)
	}
	before := text[:at]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + len([]rune(string(before[bytes.LastIndexByte(before, '\n')+1:])))
	return fmt.Errorf("line %d, column %d: %w", line, column, syntax)
}
