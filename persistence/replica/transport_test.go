package replica

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// TestWhatRaftLogs: it is there for those who debug it, and for nobody else.
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
}
