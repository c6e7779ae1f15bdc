package config

import (
	"bytes"
	"testing"

	"github.com/rs/zerolog"
)

// TestAStartIsQuietOnATerminal: a person reads the address instead of the life of the parts, but
// everything that is amiss.
func TestAStartIsQuietOnATerminal(t *testing.T) {
	var shown bytes.Buffer
	w := &quietStart{to: &shown}
	log := zerolog.New(w)
	log.Info().Msg("opened")
	log.Warn().Msg("amiss")
	w.started.Store(true)
	log.Info().Msg("reloaded")
	if got, want := shown.String(), `{"level":"warn","message":"amiss"}`+"\n"+`{"level":"info","message":"reloaded"}`+"\n"; got != want {
		t.Errorf("got %s", got)
	}
}
