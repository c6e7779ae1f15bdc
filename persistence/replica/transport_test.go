package replica

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// TestWhatRaftLogs: it is there for those who debug it, and for nobody else but what is about copies.
func TestWhatRaftLogs(t *testing.T) {
	for level, want := range map[zerolog.Level]string{
		zerolog.DebugLevel: `"id":"a","message":"raft: entering follower state"`,
		zerolog.InfoLevel:  "",
	} {
		var lines bytes.Buffer
		raftLog(zerolog.New(&lines).Level(level)).Info("entering follower state", "id", "a")
		if got := lines.String(); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("at level %s: got %q, want %q", level, got, want)
		}
	}
	var lines bytes.Buffer
	log := raftLog(zerolog.New(&lines).Level(zerolog.InfoLevel))
	log.Info("installing snapshot on", "peer", "a", "size", 7)
	log.Error("failed to install snapshot", "peer", "a", "error", io.EOF)
	const want = `{"level":"info","peer":"a","size":"7","message":"raft: installing snapshot on"}` + "\n" +
		`{"level":"warn","peer":"a","error":"EOF","message":"raft: failed to install snapshot"}` + "\n"
	if got := lines.String(); got != want {
		t.Errorf("copies of a shard: got %s, want %s", got, want)
	}
}
