package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/bench/internal/harness"
)

func TestWrongUsage(t *testing.T) {
	for command, lines := range map[string][]string{
		"":         {""},
		"nothing":  {""},
		"compare":  {"-targets nothing", "-connections many", "-connections 0", "-batch 0", "-replies short", "-mix delete=1", "-rounds 0", "-unknown", "something"},
		"overload": {"-loads 1,11", "-duration 2h", "-connections 100000", "-share -1", "-idle 0", "-unknown"},
		"million":  {"-instances 0", "-rounds 0", "something"},
		"soak":     {"-for 1m", "-every 0s", "-rate 0", "-memory 1", "-disk 1", "something"},
	} {
		for _, line := range lines {
			assert.ErrorIs(t, run(t.Context(), append([]string{command}, strings.Fields(line)...), io.Discard, io.Discard), harness.ErrUsage, "%v %v", command, line)
		}
	}
}
