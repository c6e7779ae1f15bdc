package serve

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/cmd/internal/author"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/cluster"
	"troupe/cmd/internal/credential"
	"troupe/cmd/internal/operate"
)

func TestMain(m *testing.M) {
	clitest.Program = func() *cobra.Command {
		commands := []*cobra.Command{Command(clitest.Example()), cluster.Command(clitest.Example())}
		return cli.NewRoot("", "", slices.Concat(commands, credential.Commands(), author.Commands(), operate.Commands())...)
	}
	m.Run()
}

// TestTranscripts plays testdata/transcripts:
//
//	open HOME      a service on a home, whose commands are taken; close
//	cluster HOME   the first node of a cluster, at $address; it follows what is published
//	offers         how many workflows and templates are in use, which of two users, and in a cluster who published them
//	count ID       an instance of version 1 of a workflow
//	door           the definition of the input is published by its owner
//	token          commands have a token of the holder of mod-admin
//	pipe FILE      a pipe
func TestTranscripts(t *testing.T) {
	var o *opened
	open := func(s *clitest.Scene, as *opened) {
		o = as
		s.Cleanup(func() { _ = as.stop() })
	}
	clitest.Transcripts(t, "testdata/transcripts", clitest.Commands{
		"open": func(s *clitest.Scene, cmd *datadriven.TestData) string {
			open(s, mustOpenService(s.T, cmd.CmdArgs[0].String()))
			o.config.Admin = ""
			require.NoError(s, o.takeCommands())
			return ""
		},
		"close": func(*clitest.Scene, *datadriven.TestData) string { o.close(); return "" },
		"cluster": func(s *clitest.Scene, cmd *datadriven.TestData) string {
			open(s, openCluster(s.T, cmd.CmdArgs[0].String()))
			o.service.log = zerolog.Nop() // NB: the follower is a goroutine of its own
			o.followPublished()
			s.Call("$address", "http://"+o.gateway.Addr().String())
			return ""
		},
		"offers": func(*clitest.Scene, *datadriven.TestData) string {
			text := fmt.Sprintf("%d workflows, %d templates", o.catalog.Len(), o.formTemplates.Len())
			for _, user := range []identity.UserID{"jim.roe", "john.doe"} {
				if o.identities.Directory().Principal(user) != nil {
					text += ", " + string(user)
				}
			}
			if o.published != nil {
				now, err := o.published.Publication()
				require.NoError(t, err)
				text += ", published by " + now.By
			}
			return text
		},
		"count": func(_ *clitest.Scene, cmd *datadriven.TestData) string {
			o.countInstance(cmd.CmdArgs[0].String(), 1)
			return ""
		},
		"door": func(s *clitest.Scene, cmd *datadriven.TestData) string {
			require.NoError(s, o.publish("", cmd.Input+"\n", false))
			return ""
		},
		"token": func(s *clitest.Scene, _ *datadriven.TestData) string {
			secret, _, err := o.identities.Create(context.Background(), identity.Token, identity.CreateCredential{User: "paulo.santos"})
			require.NoError(s, err)
			s.Setenv("TROUPE_TOKEN", secret)
			return ""
		},
		"pipe": func(s *clitest.Scene, cmd *datadriven.TestData) string {
			require.NoError(s, syscall.Mkfifo(cmd.CmdArgs[0].String(), 0o600))
			return ""
		},
	})
}
