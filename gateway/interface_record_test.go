package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wantSameMeaning demands that two JSON texts have the same keys in the same
// order, the same literals of numbers and the same decoded strings.
func wantSameMeaning(t testing.TB, got, want string) {
	t.Helper()
	gotTokens, wantTokens := tokens(t, got), tokens(t, want)
	assert.True(t, slices.Equal(gotTokens, wantTokens), "free-form data changed:\n got %s\nwant %s", got, want)
}

// tokens flattens a JSON text; strings are marked, so that "1" is not 1.
func tokens(t testing.TB, text string) []string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var out []string
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return out
		}
		require.NoError(t, err, "read %s", text)
		out = append(out, fmt.Sprintf("%T %v", token, token))
	}
}

// wantSameAnswer demands two answers that nobody can tell apart.
func wantSameAnswer(t testing.TB, got, want answer) {
	t.Helper()
	got.Header, want.Header = got.Header.Clone(), want.Header.Clone()
	got.Header.Del("Date")
	want.Header.Del("Date")
	assert.True(t, got.Status == want.Status && got.Body == want.Body && maps.EqualFunc(got.Header, want.Header, slices.Equal),
		"two answers can be told apart:\n%d %s %v\n%d %s %v", got.Status, got.Body, got.Header, want.Status, want.Body, want.Header)
}
