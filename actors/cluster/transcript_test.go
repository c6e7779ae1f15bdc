package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"troupe/actors/cluster/peer"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
)

// TestTranscripts holds what testdata/nodes says of nodes in memory, in virtual time. Each story has a cluster of its own; what answers
// nothing stands only in the story. -rewrite writes the answers anew.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/nodes/*.txt")
	require.True(t, err == nil && len(files) > 0, "%v %v", files, err)
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) (answers string) {
				shards := 2
				d.MaybeScanArgs(t, "shards", &shards)
				inWorld(t, shards, func(t *testing.T, w *world) { answers = tell(t, w, d.Input) })
				return answers
			})
		})
	}
}

// story is a cluster whose nodes and join keys have names. Its methods are the words of the transcripts.
type story struct {
	*world
	t     *testing.T
	named map[string]*process
	keys  map[string]peer.JoinKey
	begun time.Time
	led   string // by each, when that was asked last
}

func tell(t *testing.T, w *world, text string) string {
	s := &story{world: w, t: t, named: map[string]*process{}, keys: map[string]peer.JoinKey{}}
	var answers strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		if answer := s.do(words[0], words[1:]); answer != "" {
			answer = s.plain(answer)
			if strings.HasPrefix(words[0], "start") || words[0] == "ends" || words[0] == "runs" { // whoever of the others said it first
				answer = regexp.MustCompile(`node [^`+words[1]+`]\b`).ReplaceAllString(answer, "node <other>")
			}
			fmt.Fprintf(&answers, "%s: %s\n", line, answer)
		}
	}
	return answers.String()
}

var random = regexp.MustCompile(`[0-9A-Z]{26}|[0-9a-f]{16}|\d{4}-\d\d-\d\d[T ][0-9:.]+Z?( \+0000 UTC)?`)

// plain is an answer with the nodes' names, and without what is another one each time.
func (s *story) plain(answer string) string {
	for name, p := range s.named {
		if p.Node != nil { // it was started
			answer = strings.ReplaceAll(answer, string(p.self), name)
		}
	}
	return random.ReplaceAllString(answer, "<...>")
}

func said(err error) string {
	if err == nil {
		return "ok"
	}
	return strings.ReplaceAll(err.Error(), "\n", "<a line more>")
}

// all are the nodes of some names; without one those that run.
func (s *story) all(names []string) (all []*process) {
	for _, name := range slices.Sorted(maps.Keys(s.named)) {
		p := s.named[name]
		if len(names) == 0 && s.nodes[p.self] == p || slices.Contains(names, name) {
			all = append(all, p)
		}
	}
	return all
}

func (s *story) do(word string, args []string) string {
	var p, by *process
	if len(args) > 0 {
		p = s.named[args[0]]
	}
	if len(args) > 2 {
		by = s.named[args[2]]
	}
	switch word {
	case "first":
		s.named[args[0]] = s.first()
	case "join": // b by a
		s.named[args[0]] = s.join(by)
	case "three":
		s.named["a"], s.named["b"], s.named["c"] = s.three()
	case "ready": // b by a: it has joined, and does not run
		joined, err := s.joinAs(by, s.invite(by, time.Hour))
		s.check(err)
		s.named[args[0]] = joined
	case "start":
		return said(p.start())
	case "start.node":
		return said(p.startNode())
	case "stop", "crash":
		p.stop(word == "stop")
	case "halt": // what start had begun when it failed
		s.check(p.Stop(s.t.Context()))
		s.check(p.store.Close())
		s.check(p.ClosePort(s.t.Context()))
		p.forget()
	case "close.port":
		s.check(p.ClosePort(s.t.Context()))
	case "whole": // so many nodes
		nodes, _ := strconv.Atoi(args[0])
		s.await(args[0]+" nodes", func() bool { return s.whole(nodes) })
	case "complete": // so many nodes, of which some lead more than others
		nodes, _ := strconv.Atoi(args[0])
		s.await(args[0]+" nodes", func() bool { return s.complete(nodes, 100) })
	case "remove": // b by a, lost
		return said(by.Remove(s.t.Context(), p.self, len(args) > 3))
	case "ends":
		var err error
		s.await("its end", func() bool {
			select {
			case err = <-p.Failed():
			default:
			}
			return err != nil
		})
		return said(err)
	case "why": // it is not ready
		return said(p.Ready())
	case "runs":
		select {
		case err := <-p.Failed():
			return said(err)
		default:
			return "yes"
		}
	case "served": // all shards, by whom this node knows to lead them
		s.await("leaders for all shards", func() bool {
			return !slices.ContainsFunc(slices.Collect(p.store.AllShards()), func(sh key.Shard) bool {
				_, err := AskIn(s.t.Context(), p.Node, sh, pathGroup, p.group, sh)
				return err != nil
			})
		})
	case "silent": // to all that run
		s.await("its silence", func() bool {
			return !slices.ContainsFunc(s.all(nil), func(q *process) bool { return q.isAlive(p.self) })
		})
	case "heard": // by some
		s.await("its voice", func() bool {
			return !slices.ContainsFunc(s.all(args[2:]), func(q *process) bool { return !q.isAlive(p.self) })
		})
	case "current":
		s.currentEverywhere()
	case "nonvoter": // d of b c d: the one that has no vote in Meta
		for _, q := range s.all(args[2:]) {
			if !slices.Contains(q.directory.Load().Placement[key.Meta], q.self) {
				s.named[args[0]] = q
			}
		}
	case "hand.over":
		p.HandOver(s.t.Context())
	case "advance":
		clocktest.Advance(s.duration(args[0]))
	case "for": // 5s, asking again and again; it answers what it is not at once, or in the end
		return s.repeated(args)
	case "clock":
		s.begun = time.Now()
	case "within":
		return strconv.FormatBool(time.Since(s.begun) <= s.duration(args[0]))
	case "dismissals.lost":
		s.dismissed = func(*Node, peer.NodeID) error { return errSilent }
	default:
		return s.doStates(word, args, p, by)
	}
	return ""
}

func (s *story) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	s.check(err)
	return d
}

func (s *story) repeated(args []string) string {
	first := s.do(args[1], args[2:])
	for begun, most := time.Now(), s.duration(args[0]); time.Since(begun) < most; {
		clocktest.Advance(100 * time.Millisecond)
		if now := s.do(args[1], args[2:]); now != first {
			return fmt.Sprintf("%s, then %s", first, now)
		}
	}
	return first + " all the time"
}

// doStates are the words about what nodes say, and what becomes of their machines.
func (s *story) doStates(word string, args []string, p, by *process) string {
	switch word {
	case "leads":
		if len(p.led()) == 0 {
			return "nothing"
		}
		return "something"
	case "all.led": // by these nodes
		s.await("all led", func() bool {
			led := 0
			for _, q := range s.all(args) {
				led += len(q.led())
			}
			return led == s.shards+1
		})
	case "leading": // whether each leads what it led before
		before := s.led
		s.led = ""
		for _, q := range s.all(nil) {
			s.led += fmt.Sprintln(q.led())
		}
		return map[bool]string{true: "as before", false: "otherwise"}[before == "" || s.led == before]
	case "full", "room":
		p.full.Store(word == "full")
	case "said.full":
		var full []string
		for _, n := range p.Status().Nodes {
			if n.Full {
				full = append(full, string(n.ID))
			}
		}
		return strings.Join(full, " ")
	case "votes": // whether all have a vote
		return strconv.FormatBool(!slices.ContainsFunc(p.Status().Nodes, func(n NodeStatus) bool { return !n.Voter }))
	case "past", "present": // its clock
		p.past.Store(word == "past")
	case "cut", "mend":
		p.isolate(word == "cut")
	case "state":
		return fmt.Sprintf("fresh %t, ready %t, shards are short %t", p.Fresh(), p.Ready() == nil, len(p.Status().Short) > 0)
	case "well":
		s.await("all is well", func() bool { return s.whole(len(s.nodes)) && p.Fresh() && p.Ready() == nil })
	case "leaderless":
		s.await("nobody leads", func() bool { return p.leaderNow(key.Meta) == "" })
	case "answering":
		answer, all := p.Answering(s.t.Context())
		return fmt.Sprintf("%d of %d", len(answer), all)
	case "program": // of the next level, or that of before
		p.level = map[string]int{"before": levelHere, "next": levelHere + 1}[args[1]]
	case "levels": // the cluster's, as each knows it
		var levels []string
		for _, q := range s.all(nil) {
			levels = append(levels, strconv.Itoa(q.directory.Load().Level))
		}
		return fmt.Sprintf("%s, whole %t", strings.Join(levels, " "), s.whole(len(s.nodes)))
	case "level":
		s.await("the level", func() bool {
			return !slices.ContainsFunc(s.all(nil), func(q *process) bool { return strconv.Itoa(q.directory.Load().Level) != args[0] }) && s.whole(len(s.nodes))
		})
	case "wants": // so many shards
		p.shards, _ = strconv.Atoi(args[1])
	case "shards": // of the store that it would have, and has, where its file is lost; unknown: it does not say
		if err := os.Remove(files{p.dir}.path(shardsFile)); !errors.Is(err, fs.ErrNotExist) {
			s.check(err)
		}
		p.shards, _ = strconv.Atoi(args[1])
		p.disk.Shards = max(p.shards, p.disk.Shards)
	case "invite":
		return said(second(p.Invite(s.t.Context(), time.Hour)))
	case "key": // k by a 1h
		s.keys[args[0]] = s.invite(by, s.duration(args[3]))
	case "forge": // k from j and i: of another cluster without i, or with the secret of i
		forged := s.keys[args[2]]
		if len(args) > 3 {
			forged.Secret = s.keys[args[4]].Secret
		} else {
			forged.ID = "0123456789abcdef"
		}
		s.keys[args[0]] = forged
	case "use": // k by a
		before := by.directory.Load()
		_, err := s.joinAs(by, s.keys[args[0]])
		return said(err) + map[bool]string{false: "; the cluster has changed"}[err == nil || reflect.DeepEqual(before, by.directory.Load())]
	case "word": // what is said at an address
		s.words = map[string]string{args[0]: args[1]}
	case "admit":
		return s.admit(args)
	default:
		s.t.Fatalf("there is no word %q", word)
	}
	return ""
}

func second[T any](_ T, err error) error { return err }

// admit sends node a the request of a machine that wants to join, with some parts changed. What was invited has a key.
func (s *story) admit(args []string) string {
	a := s.named["a"]
	request := joinRequest{ID: "x", Node: peer.NodeID(ulidOf(s.t)), Address: "there:1", Version: "next", Level: levelHere, Clock: time.Now()}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "invited":
			invited := s.invite(a, time.Hour)
			request.ID, request.Secret = invited.ID, invited.Secret
		case "node":
			request.Node = peer.NodeID(value)
			if p := s.named[value]; p != nil {
				request.Node = p.self
			}
		case "address":
			request.Address = value
		case "level":
			higher, _ := strconv.Atoi(value)
			request.Level += higher
		case "clock":
			request.Clock = request.Clock.Add(s.duration(value))
		case "word":
			request.Word = value
		}
	}
	nodes := len(a.directory.Load().Nodes)
	_, err := a.admit(s.t.Context(), "", request)
	return said(err) + map[bool]string{false: "; the cluster has changed"}[len(a.directory.Load().Nodes) == nodes]
}
