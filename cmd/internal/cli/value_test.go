package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed"
)

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	good := map[string]time.Duration{
		"0s": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "30d": 30 * day,
		"1d12h": 36 * time.Hour, "0d": 0, "65535d": 65535 * day, "1.5h": 90 * time.Minute,
	}
	for text, want := range good {
		got, err := ParseDuration(text)
		assert.True(t, got == want && err == nil, "parseDuration(%q): got %v, %v, want %v", text, got, err, want)
	}
	for _, text := range []string{"", "5", "d", "-1s", "-1d", "1d-1h", "1.5d", "65536d", "1d2d", "5x", "300y", "1d 2h"} {
		got, err := ParseDuration(text)
		assert.Error(t, err, "parseDuration(%q): got %v, want an error", text, got)
	}
}

func TestSizesRefused(t *testing.T) {
	for _, text := range []string{"", "-1", "1.5MiB", "1MB", "MiB", "1 MiB", "9223372036854775808", "8589934592GiB"} {
		got, err := parseSize(text)
		assert.Error(t, err, "%q: got %d, want an error", text, got)
	}
}

// TestValuesComeBack holds that what "troupe config" prints can be set again.
func TestValuesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, 65535*24*3600).Draw(t, "seconds")) * time.Second
		if again, err := ParseDuration(showDuration(d)); again != d || err != nil {
			t.Fatalf("%v: got %v, %v back from %q", d, again, err, showDuration(d))
		}
		n := rapid.Int64Min(0).Draw(t, "bytes")
		if again, err := parseSize(showSize(n)); again != n || err != nil {
			t.Fatalf("%d: got %d, %v back from %q", n, again, err, showSize(n))
		}
	})
}

func TestShownValues(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "1m": time.Minute, "12h": 12 * time.Hour, "7d": 7 * 24 * time.Hour, "1m30s": 90 * time.Second, "24h": 24 * time.Hour, "1h30m": 90 * time.Minute,
	} {
		assert.Equal(t, want, showDuration(d), d)
	}
	for want, n := range map[string]int64{"0": 0, "1023": 1023, "1KiB": 1024, "128MiB": 128 << 20, "1025": 1025, "3GiB": 3 << 30} {
		assert.Equal(t, want, showSize(n), n)
	}
}
