package repository_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/repository"
	"troupe/actors/repository/sourcetest"
	"troupe/persistence/clocktest"
)

// slow is a source in memory that takes its time for each file and each folder, and whose next call may panic.
type slow struct {
	*sourcetest.Memory
	file, folder           time.Duration
	listPanics, watchPanic atomic.Bool
}

func (s *slow) Open(ctx context.Context, file string) (*repository.File, error) {
	if err := pause(ctx, s.file); err != nil {
		return nil, err
	}
	return s.Memory.Open(ctx, file)
}

func (s *slow) List(ctx context.Context, folder string) (*repository.Listing, error) {
	if s.listPanics.Swap(false) {
		panic("a list")
	}
	if err := pause(ctx, s.folder); err != nil {
		return nil, err
	}
	return s.Memory.List(ctx, folder)
}

func (s *slow) Watch(ctx context.Context, changed func(repository.Change)) error {
	if s.watchPanic.Swap(false) {
		panic("the watch")
	}
	return s.Memory.Watch(ctx, changed)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// quiet does not log that a command takes long.
type quiet struct{ *testing.T }

func (quiet) Logf(string, ...any) {}

// script is a service that testdata/service speaks to, and its source.
type script struct {
	*service
	source  *slow
	release func()      // what "anew hold" holds back
	waiting chan string // the answer of what was begun
}

// TestService plays testdata/service: what is listed and opened, for whom, and when. Below "put", "list" and "open" stands one thing a line, with what
// is no plain word quoted as Go does; "a"*300 is 300 letters. Time passes at once. The service starts with the first command after "anew".
func TestService(t *testing.T) {
	files, err := filepath.Glob("testdata/service/*.txt")
	require.NoError(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{}
				datadriven.RunTestAny(quiet{t}, file, func(_ testing.TB, cmd *datadriven.TestData) string {
					if cmd.Cmd == "anew" {
						s.anew(t, cmd)
						return "done\n"
					}
					return strings.TrimSuffix(s.run(cmd), "\n") + "\n"
				})
			})
		})
	}
}

func (s *script) anew(t *testing.T, cmd *datadriven.TestData) {
	if s.service != nil {
		require.NoError(t, s.Stop(t.Context()))
	}
	s.source = &slow{Memory: sourcetest.NewMemory()}
	s.source.Quiet, s.source.Unwatched = cmd.HasArg("quiet"), cmd.HasArg("unwatched")
	s.source.watchPanic.Store(cmd.HasArg("watch-panics"))
	o := repository.Options{Source: s.source, Rights: rights(t, "[]")}
	for name, at := range map[string]*time.Duration{
		"file": &s.source.file, "folder": &s.source.folder, "wait": &o.WaitMax, "reconcile": &o.Reconcile, "reconcile-unwatched": &o.ReconcileUnwatched,
	} {
		if text := ""; cmd.HasArg(name) {
			cmd.ScanArgs(t, name, &text)
			var err error
			*at, err = time.ParseDuration(text)
			require.NoError(t, err)
		}
	}
	cmd.MaybeScanArgs(t, "depth", &o.DepthMax)
	for file := range strings.Lines(cmd.Input) {
		put(t, s.source, word(t, file))
	}
	for _, arg := range cmd.CmdArgs {
		if strings.HasPrefix(arg.Key, "/") {
			s.source.Fail(arg.Key, faults[arg.Vals[0]])
		}
	}
	if cmd.HasArg("hold") {
		s.release = s.source.Hold()
	}
	s.service = start(t, o)
}

// word is what is said by a word, by a quoted text, or by several of them with " + " between them.
func word(t testing.TB, said string) (text string) {
	for part := range strings.SplitSeq(strings.TrimSuffix(said, "\n"), " + ") {
		plain, times := part, 1
		if quoted, err := strconv.QuotedPrefix(part); err == nil {
			plain, err = strconv.Unquote(quoted)
			require.NoError(t, err)
			if by, ok := strings.CutPrefix(part[len(quoted):], "*"); ok {
				times, err = strconv.Atoi(by)
				require.NoError(t, err)
			}
		}
		text += strings.Repeat(plain, times)
	}
	return text
}

var faults = map[string]error{"denied": fs.ErrPermission, "unavailable": failure.ErrUnavailable, "strange": errors.New("too many open files")}

var callers = map[string]*identity.Principal{"admin": admin, "mary": mary, "john": john}

func (s *script) run(cmd *datadriven.TestData) string {
	argument := func(n int) string {
		if n < len(cmd.CmdArgs) {
			return cmd.CmdArgs[n].String()
		}
		return ""
	}
	duration := func(n int) time.Duration {
		d, err := time.ParseDuration(argument(n))
		require.NoError(s.t, err)
		return d
	}
	synctest.Wait() // until nothing goes on any more but time
	switch cmd.Cmd {
	case "put":
		for file := range strings.Lines(cmd.Input) {
			put(s.t, s.source, word(s.t, file))
		}
	case "remove":
		require.NoError(s.t, s.source.Remove(argument(0)))
	case "rights":
		s.SetRights(nil)
		if cmd.Input != "" {
			s.SetRights(rights(s.t, cmd.Input))
		}
	case "fail": // FOLDER "no-more", or one of faults
		s.source.Fail(argument(0), faults[argument(1)])
	case "tell": // FOLDER; without one: anything
		s.source.Tell(repository.Change{Folder: argument(0)})
	case "list-panics":
		s.source.listPanics.Store(true)
	case "release":
		s.release()
	case "pass":
		clocktest.Advance(duration(0))
	case "stop":
		begun := time.Now()
		require.NoError(s.t, s.Stop(s.t.Context()))
		return fmt.Sprint("done in ", time.Since(begun))
	case "begin": // a list
		answer := make(chan string, 1)
		s.waiting = answer
		go func() { answer <- s.ask(s.t.Context(), "list", cmd.Input) }()
		synctest.Wait()
	case "answer":
		return <-s.waiting
	case "ready":
		return fmt.Sprint(cmp.Or(s.Ready(), errors.New("ready")))
	case "metrics":
		m := s.Metrics()
		return fmt.Sprintf("%d files in %d folders, %d walks, %d lists; the last walk met %d unreadable, %d unwatched, %d too deep",
			m.Files, m.Folders, m.Walks, m.Lists, m.Last.Unreadable, m.Last.Unwatched, m.Last.TooDeep)
	case "logged": // how often
		return strconv.Itoa(s.log.Count(cmd.Input))
	case "list", "list-badly", "open": // and how long the caller waits
		ctx, cancel := context.WithCancel(s.t.Context())
		if argument(0) != "" {
			ctx, cancel = context.WithTimeout(ctx, duration(0))
		}
		defer cancel()
		var out []string
		for line := range strings.Lines(cmd.Input) {
			out = append(out, s.ask(ctx, cmd.Cmd, strings.TrimSuffix(line, "\n")))
		}
		return strings.Join(out, "\n")
	default:
		s.t.Fatalf("unknown command %q", cmd.Cmd)
	}
	return "done"
}

// ask is what a user gets for a line with the user's name and an extension or a path.
func (s *script) ask(ctx context.Context, command, line string) string {
	name, what, _ := strings.Cut(line, " ")
	caller, what, begun, answer := callers[name], word(s.t, what), time.Now(), ""
	switch command {
	case "list":
		got := []string{}
		err := s.List(ctx, caller, what, func(path string) error { got = append(got, path); return nil })
		if answer = fmt.Sprintf("%q", got); err != nil {
			answer = said(err)
		}
	case "list-badly":
		answer = said(s.List(ctx, caller, what, func(string) error { panic("oh") }))
	case "open":
		answer = s.opened(ctx, caller, what)
	}
	if took := time.Since(begun); took > 0 {
		answer += fmt.Sprint(", in ", took)
	}
	return answer
}

func said(err error) string { return fmt.Sprintf("%v: %v", failure.Of(err).Kind, err) }

func (s *script) opened(ctx context.Context, caller *identity.Principal, path string) string {
	f, err := s.Open(ctx, caller, path)
	if err != nil {
		assert.Nil(s.t, f, "a file in spite of %v", err)
		return said(err)
	}
	defer func() { assert.NoError(s.t, f.Close()) }()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	assert.NoError(s.t, err)
	assert.Equal(s.t, path, f.Identity().Path)
	return string(text)
}
