package endtoend

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/wiretest"
)

// TestOperationsPage reads the counters of a running program: each part has
// some, and those of the form portal move with its requests.
func TestOperationsPage(t *testing.T) {
	p := start(t, newHome(t, map[string]string{"identity.yaml": "users: [{id: ann, privileges: [mod-form-portal, mod-form]}]\n"}), "--admin", "127.0.0.1:0")
	var found []string
	p.await("the line that says where the page is", func() bool {
		found = regexp.MustCompile(`"address":"([^"]+)"[^\n]*"metrics and profiles"`).FindStringSubmatch(p.log.all())
		return found != nil
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: wiretest.AnswerMax}
	read := func() map[string]json.RawMessage {
		t.Helper()
		res, err := client.Get("http://" + found[1] + "/metrics")
		require.NoError(t, err)
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return wiretest.Decode[map[string]json.RawMessage](t, body)
	}
	portal := func() (m struct{ Open, Begun, Refused, Panics int64 }) {
		t.Helper()
		require.NoError(t, json.Unmarshal(read()["formportal"], &m))
		return m
	}
	assert.Equal(t, []string{"formportal", "gateway", "identity", "reload", "repository", "store", "template", "workflow"}, slices.Sorted(maps.Keys(read())))
	before := portal()
	p.desk("ann").Get(t, "/form-portal/forms/mycurrent").WantStatus(t, 200)
	after := portal()
	assert.True(t, after.Begun == before.Begun+1 && after.Open == 0 && after.Refused == 0 && after.Panics == 0, "after a request: got %+v, before %+v", after, before)
	p.stop()
}
