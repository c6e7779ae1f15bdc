package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTrustedProxies(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"10.0.0.5":                     "10.0.0.5/32",
		"10.0.0.5/8":                   "10.0.0.0/8",
		" 10.0.0.5 , fd00::/8,::1":     "10.0.0.5/32,fd00::/8,::1/128",
		"::ffff:10.0.0.5":              "10.0.0.5/32",
		"127.0.0.1,::1,192.168.0.0/16": "127.0.0.1/32,::1/128,192.168.0.0/16",
	} {
		list, err := parsePrefixes(text)
		got := showPrefixes(list)
		assert.True(t, err == nil && got == want, "%q: got %q, %v, want %q", text, got, err, want)
		again, err := parsePrefixes(want)
		assert.True(t, err == nil && showPrefixes(again) == want, "%q does not come back: got %v, %v", want, again, err)
	}
	for _, text := range []string{",", "10.0.0.5,", "proxy.example", "10.0.0.5/33", "10.0.0", "*", "::ffff:10.0.0.0/104", "10.0.0.5:80", "fe80::1%eth0/64", "fe80::1%eth0"} {
		got, err := parsePrefixes(text)
		assert.Error(t, err, "%q: got %v, want an error", text, got)
	}
}
