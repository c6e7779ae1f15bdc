package replica

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTranscripts holds what testdata/rows says of a log and a state over rows in memory. What answers nothing stands
// only in the story. -rewrite writes the answers anew.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/rows/*.txt")
	require.True(t, err == nil && len(files) > 0, "%v %v", files, err)
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				s := &story{t: t, m: newMemory()}
				s.check(s.restart())
				var answers strings.Builder
				for line := range strings.Lines(d.Input) {
					line = strings.TrimSpace(line)
					words := strings.Fields(line)
					if answer := s.do(words[0], words[1:]); answer != "" {
						fmt.Fprintf(&answers, "%s: %s\n", line, answer)
					}
				}
				return answers.String()
			})
		})
	}
}

// story is the log and the state of a shard. Its methods are the words of the transcripts.
type story struct {
	t     *testing.T
	m     *memory
	log   *entries
	state *state
	saved *snapshots
}

// fatal is the panic of a state that would end the process.
type fatal string

// restart reads what there is as a process that starts does.
func (s *story) restart() error {
	var err, err2 error
	s.log, err = openEntries(s.m, []byte("log "), func() func() { return func() {} })
	s.state, err2 = openState(s.m, []byte("state "), func(reason string) { panic(fatal(reason)) })
	s.saved = newSnapshots(s.m, []byte("state "), s.state)
	s.saved.log = s.log
	return errors.Join(err, err2)
}

func said(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

// numbers are those of words, which may say what they are: term=1.
func numbers(args []string) (all []uint64) {
	for _, arg := range args {
		n, _ := strconv.ParseUint(arg[strings.IndexByte(arg, '=')+1:], 10, 64)
		all = append(all, n)
	}
	return all
}

func (s *story) do(word string, args []string) string {
	n := numbers(args)
	switch word {
	case "store": // term=N, and entries; 5m2 has two members
		return said(s.log.StoreLogs(storyLogs(n[0], args[1:])))
	case "delete":
		return said(s.log.DeleteRange(n[0], n[1]))
	case "fail":
		s.m.fail = map[string]error{"refused": fmt.Errorf("disk full: %w", ErrRefused), "unknown": errors.New("nobody knows")}[args[0]]
	case "happened": // though the write of these entries failed
		for _, l := range storyLogs(n[0], args[1:]) {
			s.m.rows[string(s.log.key(l.Index))] = string(encodeEntry(l))
		}
	case "log":
		return terms(s.t, s.log)
	case "members": // which entry says them, up to each
		var all []string
		for i := range n[0] {
			of := uint64(0)
			if l := s.log.configuration(i); l != nil {
				of = l.Index
			}
			all = append(all, strconv.FormatUint(of, 10))
		}
		return strings.Join(all, " ")
	case "get":
		return said(s.log.GetLog(n[0], new(raft.Log)))
	case "damage": // the row of an entry
		row := string(s.log.key(n[0]))
		switch args[1] {
		case "gap":
			delete(s.m.rows, row)
		case "short":
			s.m.rows[row] = "short"
		case "long":
			s.m.rows[row+"x"] = s.m.rows[row]
		}
	case "restart":
		bytes, _ := s.log.size()
		err := s.restart()
		again, _ := s.log.size()
		assert.True(s.t, err != nil || bytes == again, "the log counts %d bytes, and %d after a start", bytes, again)
		return said(err)
	case "apply":
		return s.apply(n[0], args[1:])
	case "row":
		return s.m.rows["row "+args[0]]
	case "at":
		p := s.state.at
		return fmt.Sprintf("applied %d, epoch %d, revision %d, term %d", p.applied, p.epoch, p.revision, p.term)
	case "applied": // so far, whatever was before
		s.m.rows["state p"] = string(position{applied: n[0]}.encode())
		s.check(s.state.load())
	case "take":
		return said(tryTake(s.saved, n[0]))
	case "check":
		return said(s.saved.check())
	case "was": // the snapshot: index=N term=N entry=N (of its members) members=N (how many they are)
		s.m.rows["state s"] = string(s.saved.create(raft.SnapshotVersionMax, n[0], n[1], servers(n[3]), n[2]).encode())
	case "raise":
		s.check(s.saved.raise())
		meta, err := s.saved.meta()
		s.check(err)
		if meta == nil {
			return "none"
		}
		return fmt.Sprintf("%d of term %d, entry %d has %d members", meta.Index, meta.Term, meta.ConfigurationIndex, len(meta.Configuration.Servers))
	default:
		s.t.Fatalf("there is no word %q", word)
	}
	return ""
}

func (s *story) check(err error) {
	s.t.Helper()
	require.NoError(s.t, err)
}

func servers(n uint64) (c raft.Configuration) {
	for i := range n {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID("abc"[i : i+1])})
	}
	return c
}

func storyLogs(term uint64, entries []string) (logs []*raft.Log) {
	for _, text := range entries {
		index, members, is := strings.Cut(text, "m")
		l := logOf(term, numbers([]string{index})...)[0]
		if is {
			l.Type, l.Data = raft.LogConfiguration, raft.EncodeConfiguration(servers(numbers([]string{members})[0]))
		}
		logs = append(logs, l)
	}
	return logs
}

// apply applies an entry: epoch, writes epoch=N after=N ROW=VALUE …, or bytes.
func (s *story) apply(index uint64, entry []string) (answer string) {
	var data []byte
	n := numbers(entry)
	switch entry[0] {
	case "epoch":
		data = epochEntry
	case "writes":
		var sets []string
		for _, set := range entry[3:] {
			sets = append(sets, strings.Replace(set, "=", "", 1))
		}
		data = writesOf(n[1], n[2], sets...)
	default:
		data, _ = hex.DecodeString(strings.Join(entry[1:], ""))
	}
	defer func() {
		if reason := recover(); reason != nil {
			answer = fmt.Sprint("the process ends: ", reason.(fatal))
		}
	}()
	switch got := s.state.Apply(command(index, data)).(type) {
	case error:
		assert.ErrorIs(s.t, got, ErrNotLed, "it is not said to be without effect")
		return got.Error()
	case nil:
		return "ok"
	default:
		return fmt.Sprint(got)
	}
}
