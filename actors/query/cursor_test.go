package query

import (
	"encoding/base64"
	"errors"
	"slices"
	"testing"

	"troupe/actors/failure"
	"troupe/persistence/key"
)

func TestACursorFitsOnlyItsList(t *testing.T) {
	list := List{"instances", "stock", `{"a":1}`, "-svcPublic.n"}
	want := position{id: key.ID{1, 2}, value: []byte("7")}
	text := list.Cursor(want.append(nil))
	read, err := list.Position(text)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := parsePosition(read); err != nil || got.id != want.id || string(got.value) != "7" {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := parsePosition(read[:15]); !errors.Is(err, failure.ErrInvalid) {
		t.Errorf("a position without a whole id: got %v, want ErrInvalid", err)
	}
	for _, other := range []List{
		{"history", "stock", `{"a":1}`, "-svcPublic.n"},
		{"instances", "stocks", `{"a":1}`, "-svcPublic.n"},
		{"instances", "stock", `{"a":1} `, "-svcPublic.n"},
		{"instances", "stock", `{"a":1}`, "svcPublic.n"},
		{"instances", "stock", `{"a":1}`, ""},
		{"instances", "stock", `{"a":1}`},
		{"instances", "stock", `{"a":1}-`, "svcPublic.n"},
	} {
		if _, err := other.Position(text); !errors.Is(err, failure.ErrInvalid) {
			t.Errorf("%q: got %v, want ErrInvalid", other, err)
		}
	}
	spoilt := []string{"", "x", "ä", text + "=", text + "\n", text[:12], text[4:], text[:len(text)-4], text + "AAAA", text + text}
	bytes, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 8 * len(bytes) {
		flipped := slices.Clone(bytes)
		flipped[n/8] ^= 1 << (n % 8)
		spoilt = append(spoilt, base64.RawURLEncoding.EncodeToString(flipped))
	}
	for _, other := range spoilt {
		if _, err := list.Position(other); !errors.Is(err, failure.ErrInvalid) {
			t.Errorf("%q: got %v, want ErrInvalid", other, err)
		}
	}
}
