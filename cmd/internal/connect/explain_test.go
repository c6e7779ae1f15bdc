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

// TestAServerThatEndsIsNamedByItsHome: and not by the host in requests to its socket, which nobody has typed.
func TestAServerThatEndsIsNamedByItsHome(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer service.Close()
	c, err := client.New(client.Options{Address: service.URL, Name: "the server on home", RetryMax: -1})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Changes(t.Context(), client.ChangesRequest{})
	require.EqualError(t, Explain(err), "changes of all workflows: ask the server on home: EOF; it closed the connection before it had answered: it may have ended")
}
