package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/catalog"
	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/gateway"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// stage has the service of a transcript.
type stage struct {
	*clitest.Scene
	*opened
	nodes map[string]*service  // by their homes
	tried map[string]*home.Set // likewise
}

// TestTranscripts plays testdata/transcripts:
//
//	open HOME      a service on a home, whose commands are taken; close
//	reload         looks at the files of the home
//	cluster HOME   the first node of a cluster, at $address; it follows what is published
//	offers         how many workflows and templates are in use, which of two users, and in a cluster who published them
//	readers        who is shown a list of reports (rml) and of what is shared (txt)
//	create ID      an instance of version 1 of a workflow
//	door           the definition of the input is published by its owner; version=N, by=USER, dry
//	try HOME ID    what becomes of an instance of a workflow of a home, which is read once: a line that creates it and lines of events, each with
//	               who sends it. Shown are the nodes, who may do its tasks, and svcPublic; or why the last line was refused
//	token          commands have a token of the holder of mod-admin
//	pipe FILE      a pipe; touch FILE is modified in an hour
//	at NAME        names a free address of a node
//	node HOME      a node of a cluster runs on a home until halt HOME; its id is $HOME
//	invite HOME NAME  names a key to join; at=ADDRESS and authority=other make another one of it
//	nodes HOME     how many nodes the cluster has
//	tree DIR       all that is below a folder, without the files of Pebble; copy FROM TO
//
// open and reload show what was logged, and which files wait and why.
func TestTranscripts(t *testing.T) {
	on := &stage{}
	commands := clitest.Commands{}
	for name, do := range map[string]func(cmd *datadriven.TestData, args ...string) string{
		"open": on.open, "reload": on.reload, "cluster": on.cluster, "offers": on.offers, "readers": on.readers, "door": on.door, "try": on.try,
		"token": on.token, "node": on.node, "invite": on.invite, "tree": on.tree,
		"close":  func(*datadriven.TestData, ...string) string { on.close(); return "" },
		"create": func(_ *datadriven.TestData, args ...string) string { on.countInstance(args[0], 1); return "" },
		"at": func(_ *datadriven.TestData, args ...string) string {
			on.Call(args[0], clitest.NodeAddress())
			return ""
		},
		"halt": func(_ *datadriven.TestData, args ...string) string {
			require.NoError(on, on.nodes[args[0]].stop())
			return ""
		},
		"nodes": func(_ *datadriven.TestData, args ...string) string {
			return fmt.Sprint(len(clusterOf(on.T, args[0]).Nodes))
		},
		"copy": func(_ *datadriven.TestData, args ...string) string {
			require.NoError(on, os.CopyFS(args[1], os.DirFS(args[0])))
			return ""
		},
		"pipe": func(_ *datadriven.TestData, args ...string) string {
			require.NoError(on, syscall.Mkfifo(args[0], 0o600))
			return ""
		},
		"touch": func(_ *datadriven.TestData, args ...string) string {
			later := time.Now().Add(time.Hour)
			require.NoError(on, os.Chtimes(args[0], later, later))
			return ""
		},
	} {
		commands[name] = func(s *clitest.Scene, cmd *datadriven.TestData) string {
			if on.Scene != s {
				*on = stage{Scene: s, nodes: map[string]*service{}, tried: map[string]*home.Set{}}
			}
			var args []string
			for _, a := range cmd.CmdArgs {
				if a.Vals == nil {
					args = append(args, a.Key)
				}
			}
			return do(cmd, args...)
		}
	}
	clitest.Transcripts(t, "testdata/transcripts", commands)
}

// given is a named argument, or nothing.
func given(cmd *datadriven.TestData, name string) string {
	if arg, ok := cmd.Arg(name); ok {
		return arg.Vals[0]
	}
	return ""
}

func (on *stage) open(_ *datadriven.TestData, args ...string) string {
	o := mustOpenService(on.T, args[0])
	on.opened = o
	on.Cleanup(func() { _ = o.stop() })
	o.config.Admin = ""
	require.NoError(on, o.takeCommands())
	return on.logged()
}

func (on *stage) reload(*datadriven.TestData, ...string) (text string) {
	if on.reloadAll() {
		text = "it is tried again\n"
	}
	return on.logged() + text
}

// logged is what was logged since it was asked last, and which files wait.
func (on *stage) logged() string {
	text := on.opened.log.String()
	on.opened.log.Reset()
	for _, r := range []*reload{&on.reloads.access, &on.reloads.definitions} {
		err := r.ready()
		assert.Equal(on, err != nil, r.metrics().Pending, "the metrics say pending, %v", err)
		if err != nil {
			text += "waiting: " + err.Error() + "\n"
		}
	}
	return text
}

func (on *stage) cluster(_ *datadriven.TestData, args ...string) string {
	o := openCluster(on.T, args[0])
	on.opened = o
	on.Cleanup(func() { _ = o.stop() })
	o.service.log = zerolog.Nop() // NB: the follower is a goroutine of its own
	o.followPublished()
	on.Call("$address", "http://"+o.gateway.Addr().String())
	return ""
}

func (on *stage) offers(*datadriven.TestData, ...string) string {
	text := fmt.Sprintf("%d workflows, %d templates", on.catalog.Len(), on.formTemplates.Len())
	for _, user := range []identity.UserID{"jim.roe", "john.doe"} {
		if on.identities.Directory().Principal(user) != nil {
			text += ", " + string(user)
		}
	}
	if on.published != nil {
		now, err := on.published.Publication()
		require.NoError(on, err)
		text += ", published by " + now.By
	}
	return text
}

func (on *stage) readers(*datadriven.TestData, ...string) (text string) {
	for _, extension := range []string{"rml", "txt"} {
		text += extension + ":"
		for _, u := range []identity.UserID{"john.doe", "mary.major"} {
			found := false
			caller := on.identities.Directory().Principal(u)
			require.NoError(on, on.repository.List(context.Background(), caller, extension, func(string) error { found = true; return nil }))
			if found {
				text += " " + string(u)
			}
		}
		text += "\n"
	}
	return text
}

func (on *stage) door(cmd *datadriven.TestData, _ ...string) string {
	by := &identity.Principal{ID: identity.UserID(cmp.Or(given(cmd, "by"), "paulo.santos"))}
	if by.ID != "paulo.santos" {
		by.Privileges = []string{"mod-workflows"}
	}
	_, err := on.definitions().PublishDefinition(context.Background(), &gateway.DefinitionRequest{
		Caller: by, WorkflowID: "door", Version: given(cmd, "version"), File: "body.yaml", Text: []byte(cmd.Input + "\n"), DryRun: cmd.HasArg("dry"),
	})
	if err != nil {
		return fmt.Sprintf("%s: %s", failure.Of(err).Kind, err)
	}
	return on.logged()
}

func (on *stage) token(*datadriven.TestData, ...string) string {
	secret, _, err := on.identities.Create(context.Background(), identity.Token, identity.CreateCredential{User: "paulo.santos"})
	require.NoError(on, err)
	on.Setenv("TROUPE_TOKEN", secret)
	return ""
}

// people are those of the example, and of troupe init.
var people = []*statemachine.Caller{
	{ID: "john.doe", Roles: []string{"employee", "inspector"}},
	{ID: "mary.major", Roles: []string{"employee", "manager"}},
	{ID: "paulo.santos", Roles: []string{"employee", "purchasing"}},
	{ID: "alice", Roles: []string{"employee"}},
	{ID: "bob", Roles: []string{"employee"}},
}

func (on *stage) try(cmd *datadriven.TestData, args ...string) string {
	set := on.tried[args[0]]
	if set == nil {
		parser, err := statemachine.NewParser(statemachine.ParserOptions{})
		require.NoError(on, err)
		set, err = home.Load(os.DirFS(args[0]), parser)
		require.NoError(on, err)
		require.Empty(on, set.Warnings)
		on.tried[args[0]] = set
	}
	i := slices.IndexFunc(set.Workflows, func(w catalog.Source) bool { return string(w.Parsed.ID) == args[1] })
	d, now := set.Workflows[i].Parsed, time.Unix(0, 0)
	var in statemachine.Instance
	for n, line := range strings.Split(cmd.Input, "\n") {
		words := append(strings.SplitN(line, " ", 3), "")
		by := people[slices.IndexFunc(people, func(c *statemachine.Caller) bool { return string(c.ID) == words[0] })]
		var (
			result statemachine.Result
			err    error
		)
		if n == 0 {
			created := data.Value(words[2])
			public, _ := created.Lookup("svcPublic")
			private, _ := created.Lookup("svcPrivate")
			result, err = d.Create(statemachine.Creation{ID: "i", Caller: by, Public: public, Private: private, Now: now})
		} else if err = statemachine.ErrForbidden; d.MaySend(statemachine.View{Instance: &in, Of: d}, by, now) {
			result, err = d.Step(&in, statemachine.Event{Name: statemachine.EventName(words[1]), Data: data.Value(words[2]), Caller: by, Now: now})
		}
		if err != nil {
			return "! " + err.Error()
		}
		in = result.Instance
	}
	var nodes []string
	for _, p := range d.Positions(&in) {
		nodes = append(nodes, string(p.Node))
	}
	text := strings.Join(nodes, " ") + "\n"
	for _, task := range in.Tasks() {
		text += "a task of"
		for _, c := range people {
			if (&statemachine.View{Instance: &in, Of: d}).IsCandidate(&task, c, now) {
				text += " " + string(c.ID)
			}
		}
		text += "\n"
	}
	return text + string(in.Public)
}

func (on *stage) node(_ *datadriven.TestData, args ...string) string {
	s := newService(args[0])
	s.config.Store.Shards = 0 // as init made it
	require.NoError(on, errors.Join(s.config.Load(), s.start(on.Context())))
	on.Cleanup(func() { _ = s.stop() })
	on.nodes[args[0]] = s
	on.Call("$"+args[0], string(s.node.Self()))
	return ""
}

func (on *stage) invite(cmd *datadriven.TestData, args ...string) string {
	code, key, stderr := clitest.Invoke("cluster", "invite", "--home", args[0])
	require.Equal(on, cli.ExitDone, code, stderr)
	parsed, err := peer.ParseJoinKey(strings.TrimSpace(key))
	require.NoError(on, err)
	if at := given(cmd, "at"); at != "" {
		parsed.Address = on.Meant(at)
	}
	if given(cmd, "authority") != "" {
		parsed.Authority[0]++
	}
	on.Call(args[1], parsed.String())
	return ""
}

func (on *stage) tree(_ *datadriven.TestData, args ...string) string {
	ofPebble := regexp.MustCompile(`/data/(?:\d+\.|MANIFEST|OPTIONS|marker)`)
	return strings.Join(slices.DeleteFunc(tree(on.T, filepath.Clean(args[0])), ofPebble.MatchString), "\n")
}
