package query

import (
	"encoding/base64"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/persistence/key"
)

func TestACursorFitsOnlyItsList(t *testing.T) {
	list := List{"instances", "stock", `{"a":1}`, "-svcPublic.n"}
	want := position{id: key.ID{1, 2}, value: []byte("7")}
	text := list.Cursor(want.append(nil))
	read, err := list.Position(text)
	require.NoError(t, err)
	got, err := parsePosition(read)
	assert.True(t, err == nil && got.id == want.id && string(got.value) == "7", "got %+v, %v, want %+v", got, err, want)
	_, err = parsePosition(read[:15])
	assert.ErrorIs(t, err, failure.ErrInvalid, "a position without a whole id")
	for _, other := range []List{
		{"history", "stock", `{"a":1}`, "-svcPublic.n"},
		{"instances", "stocks", `{"a":1}`, "-svcPublic.n"},
		{"instances", "stock", `{"a":1} `, "-svcPublic.n"},
		{"instances", "stock", `{"a":1}`, "svcPublic.n"},
		{"instances", "stock", `{"a":1}`, ""},
		{"instances", "stock", `{"a":1}`},
		{"instances", "stock", `{"a":1}-`, "svcPublic.n"},
	} {
		_, err := other.Position(text)
		assert.ErrorIs(t, err, failure.ErrInvalid, other)
	}
	spoilt := []string{"", "x", "ä", text + "=", text + "\n", text[:12], text[4:], text[:len(text)-4], text + "AAAA", text + text}
	bytes, err := base64.RawURLEncoding.DecodeString(text)
	require.NoError(t, err)
	for n := range 8 * len(bytes) {
		flipped := slices.Clone(bytes)
		flipped[n/8] ^= 1 << (n % 8)
		spoilt = append(spoilt, base64.RawURLEncoding.EncodeToString(flipped))
	}
	for _, other := range spoilt {
		_, err := list.Position(other)
		assert.ErrorIs(t, err, failure.ErrInvalid, other)
	}
}
