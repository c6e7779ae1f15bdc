package connect

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/client"
)

// TestExplainNamesTheOtherScheme: whoever speaks TLS to a service without it, or not to one with it, is told.
func TestExplainNamesTheOtherScheme(t *testing.T) {
	service := httptest.NewServer(http.NotFoundHandler())
	defer service.Close()
	_, err := service.Client().Get("https" + service.URL[len("http"):]) //nolint:noctx,bodyclose // there is no answer
	require.Error(t, err)
	assert.ErrorContains(t, Explain(err), "begin its address with http://")
	assert.ErrorContains(t, Explain(&client.Error{Status: http.StatusBadRequest}), "begin its address with https://")
}
