package config

import (
	"bytes"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
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
	assert.Equal(t, `{"level":"warn","message":"amiss"}`+"\n"+`{"level":"info","message":"reloaded"}`+"\n", shown.String())
}
