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

// TestACommandWarnsInPlainLines: a store that a command has opened is low on space.
func TestACommandWarnsInPlainLines(t *testing.T) {
	var shown bytes.Buffer
	log := zerolog.New(plainLines(&shown)).With().Timestamp().Logger()
	log.Warn().Int("free_bytes", 7).Msg("disk space is running low")
	assert.Equal(t, "warning: disk space is running low free_bytes=7\n", shown.String())
}
