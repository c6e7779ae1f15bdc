package identity

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// clusterScript is a cluster that testdata/cluster speaks to.
type clusterScript struct {
	*testing.T
	*cluster
	script
	named map[string]*clusterNode // nodes by the names that the script gives
}

// TestClusterScript plays testdata/cluster: commands of testdata/script on three nodes. "at NODE" runs those below it on a node, "everywhere" on each, and "run"
// on the leader, again until it has an answer, as the gateway does; "all-at-once" runs each of them at the same time.
func TestClusterScript(t *testing.T) {
	files, err := filepath.Glob("testdata/cluster/*.txt")
	require.NoError(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &clusterScript{T: t}
				defer func() { s.end() }()
				datadriven.RunTestAny(quiet{t}, file, func(_ testing.TB, cmd *datadriven.TestData) string {
					line := cmd.Cmd
					for _, arg := range cmd.CmdArgs {
						line += " " + arg.String()
					}
					return strings.TrimRight(s.run(line, cmd.Input), "\n") + "\n"
				})
			})
		})
	}
}

// at is the node that a word names, or the one that leads now, or one that does not.
func (s *clusterScript) at(name string) *clusterNode {
	switch name {
	case "leader":
		return s.leader()
	case "follower":
		return s.follower()
	}
	require.Contains(s, s.named, name)
	return s.named[name]
}

// on runs a command of testdata/script on a node. Why there is no answer hangs on who is elected when, so only the kind is said.
func (s *clusterScript) on(n *clusterNode, line string) string {
	one := s.script
	one.T, one.Identities = s.T, n.Replicated
	answer := one.run(line, "")
	for _, kind := range noAnswers {
		if strings.HasPrefix(answer, kind) {
			return kind
		}
	}
	return answer
}

var noAnswers = []string{"led by another node of shard 65535", "outcome unknown", "unavailable"}

// ask has the leader do something, until it has done it.
func (s *clusterScript) ask(line string) (answer string) {
	for range 100 {
		answer = s.on(s.leader(), line)
		if !slices.Contains(noAnswers, answer) {
			return answer
		}
		pass(100 * time.Millisecond)
	}
	s.Fatalf("%s: no answer for a long time", line)
	return ""
}

func (s *clusterScript) run(line, input string) string {
	synctest.Wait() // until nothing goes on any more but time
	words := append(strings.Fields(line), "", "")
	var out []string
	switch words[0] {
	case "anew": // with options of testdata/script
		if s.cluster != nil {
			s.end()
		}
		s.script = script{T: s.T, mu: new(sync.Mutex), made: map[string]string{}, answers: map[string]chan string{}}
		s.script.run(strings.Replace(line, "anew", "options", 1), "")
		s.cluster, s.named = startCluster(s.T, s.options), map[string]*clusterNode{}
	case "call": // NAME NODE
		s.named[words[1]] = s.at(words[2])
	case "isolate", "join": // NODE
		s.at(words[1]).isolate(words[0] == "isolate")
	case "hand": // NODE, or to any other
		to := ""
		if words[1] != "" {
			to = s.at(words[1]).Name
		}
		s.hand(to)
	case "loading": // NODE has no service for the commands below
		n := s.at(words[1])
		service := n.present().service.Swap(nil)
		out = append(out, s.run("at "+words[1], input))
		n.present().service.Store(service)
	case "stored": // DIRECTORY: what the store has
		s.stored.Store(parse(s.T, map[string]string{"staff": staff}[words[1]]))
	case "remembered": // "uses" or "ends", on all nodes
		size := 0
		for _, n := range s.nodes {
			size += map[string]int{"uses": n.uses.Size(), "ends": n.ends.Size()}[words[1]]
		}
		return strconv.Itoa(size)
	case "until": // CREDENTIAL AGE
		age, err := time.ParseDuration(words[2])
		require.NoError(s, err)
		pass(age - s.since(s.made[words[1]]))
	case "pass":
		s.script.run(line, "")
	case "at": // NODE
		n := s.at(words[1])
		for line := range strings.Lines(input) {
			out = append(out, strings.TrimSpace(line)+": "+s.on(n, line))
		}
	case "all-at-once": // NODE, and "unsure" where it may say any of noAnswers
		n := s.at(words[1])
		answers := map[string]chan string{}
		for line := range strings.Lines(input) {
			answer := make(chan string, 1)
			answers[line] = answer
			go func() { answer <- s.on(n, line) }()
		}
		for line := range strings.Lines(input) {
			answer := <-answers[line]
			if words[2] == "unsure" && slices.Contains(noAnswers, answer) {
				answer = "no answer"
			}
			out = append(out, strings.TrimSpace(line)+": "+answer)
		}
	case "everywhere":
		for line := range strings.Lines(input) {
			all := s.on(s.nodes[0], line)
			for _, n := range s.nodes[1:] {
				if answer := s.on(n, line); answer != all {
					all += "; otherwise at " + n.Name + ": " + answer
				}
			}
			out = append(out, strings.TrimSpace(line)+": "+all)
		}
	case "run":
		for line := range strings.Lines(input) {
			out = append(out, strings.TrimSpace(line)+": "+s.ask(line))
		}
	default:
		s.Fatalf("unknown command %q", words[0])
	}
	if len(out) == 0 {
		return "done"
	}
	return strings.Join(out, "\n")
}
