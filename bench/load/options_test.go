package load

import (
	"strings"
	"testing"
)

func TestMixes(t *testing.T) {
	for _, c := range []struct {
		text string
		want Mix
		ok   bool
	}{
		{"event=1", Mix{0, 1, 0}, true},
		{"create=1,event=8,read=1", Mix{1, 8, 1}, true},
		{"read=3", Mix{0, 0, 3}, true},
		{"event=0", Mix{}, false},
		{"event", Mix{}, false},
		{"event=-1", Mix{}, false},
		{"delete=1", Mix{}, false},
		{"", Mix{}, false},
	} {
		got, err := ParseMix(c.text)
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("%q: got %v, %v; want %v", c.text, got, err, c.want)
		}
		if c.ok && got.String() != c.text {
			t.Errorf("%q: written as %q", c.text, got)
		}
	}
}

func TestAMixIsPickedByItsParts(t *testing.T) {
	mix := Mix{1, 8, 1}
	var got Mix
	for n := range uint64(1000) {
		got[mix.pick(n)]++
	}
	if want := (Mix{100, 800, 100}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFaultsOfOptionsAreNamedTogether(t *testing.T) {
	o := Options{Connections: -1, Rate: -1, Token: "a\r\nb"}
	o.ensureDefaults()
	err := o.validate()
	for _, part := range []string{"Addr is missing", "Connections", "Rate", "Token"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want it to name %s", err, part)
		}
	}
}
