package load

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMixes(t *testing.T) {
	for _, c := range []struct {
		text string
		want Mix
		ok   bool
	}{
		{"event=1", Mix{Event: 1}, true},
		{"create=1,event=8,read=1,query=0.1", Mix{1, 8, 1, 0.1}, true},
		{"read=3", Mix{Read: 3}, true},
		{"event=0", Mix{}, false},
		{"event", Mix{}, false},
		{"event=-1", Mix{}, false},
		{"event=NaN", Mix{}, false},
		{"event=Inf", Mix{}, false},
		{"delete=1", Mix{}, false},
		{"event=1,event=0", Mix{}, false},
		{"", Mix{}, false},
	} {
		got, err := ParseMix(c.text)
		assert.True(t, got == c.want && (err == nil) == c.ok, "%q: got %v, %v; want %v", c.text, got, err, c.want)
		assert.False(t, c.ok && got.String() != c.text, "%q: written as %q", c.text, got)
	}
}

func TestAMixIsPickedByItsParts(t *testing.T) {
	mix := Mix{1, 8, 0.5, 0.5}
	var got Mix
	for n := range 1000 {
		got[mix.pick(float64(n)/1000)]++
	}
	want := (Mix{100, 800, 50, 50})
	assert.Equal(t, want, got)
}

func TestFaultsOfOptionsAreNamedTogether(t *testing.T) {
	o := Options{Connections: -1, Rate: -1, Token: "a\r\nb", Batch: -1}
	o.EnsureDefaults()
	err := o.Validate()
	for _, part := range []string{"Addr is missing", "Connections", "Rate", "Token", "Batch"} {
		assert.True(t, err != nil && strings.Contains(err.Error(), part), "got %v, want it to name %s", err, part)
	}
}
