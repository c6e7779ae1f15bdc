package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/export"
)

// TestOnlySuccessConfirms: a batch that is sent again has the same id, and neither errors nor the name show a secret.
func TestOnlySuccessConfirms(t *testing.T) {
	status, ids := 0, map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		user, password, _ := r.BasicAuth()
		assert.Equal(t, "{\"n\":1}\n{\"n\":2}\n /rows x=y ann hidden application/x-ndjson",
			strings.Join([]string{string(body), r.URL.Path, r.URL.RawQuery, user, password, r.Header.Get("Content-Type")}, " "))
		assert.True(t, strings.HasPrefix(r.Header.Get("Webhook-Signature"), "v1,") && r.Header.Get("Webhook-Timestamp") != "")
		ids[r.Header.Get("Webhook-Id")]++
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	defer server.Close()
	address := strings.Replace(server.URL, "http://", "http://ann:hidden@", 1) + "/rows?x=y"
	rows := []export.Row{{Text: []byte(`{"n":1}`)}, {Text: []byte(`{"n":2}`)}}
	o := Options{URL: address, Secret: []byte("a secret of twenty-four bytes"), Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	e, err := New(o)
	require.NoError(t, err)
	for _, status = range []int{200, 204, 302, 400, 503} {
		if err := e.Write(t.Context(), rows); status < 300 {
			require.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, "the answer was")
		}
	}
	assert.Len(t, ids, 1)
	assert.Equal(t, server.URL+"/rows", e.String())
	require.NoError(t, e.Close())

	o.Allow = nil
	guarded, err := New(o)
	require.NoError(t, err)
	server.Close()
	for _, of := range []*Endpoint{e, guarded} {
		err := of.Write(t.Context(), rows)
		assert.True(t, err != nil && !strings.Contains(err.Error(), "hidden") && !strings.Contains(err.Error(), "x=y"), "%v", err)
	}
	assert.ErrorContains(t, guarded.Write(t.Context(), rows), "the address is private")
	_, err = New(Options{URL: "https://ann:hidden@"})
	assert.True(t, err != nil && !strings.Contains(err.Error(), "hidden"), "%v", err)
}
