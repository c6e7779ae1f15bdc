package replica

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
)

// TestWhatRaftLogs: it is there for those who debug it, and for nobody else but what is about copies.
func TestWhatRaftLogs(t *testing.T) {
	for level, want := range map[zerolog.Level]string{
		zerolog.DebugLevel: `"id":"a","message":"raft: entering follower state"`,
		zerolog.InfoLevel:  "",
	} {
		var lines bytes.Buffer
		raftLog(zerolog.New(&lines).Level(level)).Info("entering follower state", "id", "a")
		got := lines.String()
		assert.True(t, strings.Contains(got, want) && (want == "") == (got == ""), "at level %s: got %q, want %q", level, got, want)
	}
	var lines bytes.Buffer
	log := raftLog(zerolog.New(&lines).Level(zerolog.InfoLevel))
	log.Info("installing snapshot on", "peer", "a", "size", 7)
	log.Error("failed to install snapshot", "peer", "a", "error", io.EOF)
	const want = `{"level":"info","peer":"a","size":"7","message":"raft: installing snapshot on"}` + "\n" +
		`{"level":"warn","peer":"a","error":"EOF","message":"raft: failed to install snapshot"}` + "\n"
	assert.Equal(t, want, lines.String(), "copies of a shard")
}
