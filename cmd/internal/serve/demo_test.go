package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/actors/query"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/demo"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/login"
)

// startDemo starts a service on a home as `serve --demo` does, and returns what it says.
func startDemo(t *testing.T, dir string) (*service, string) {
	t.Helper()
	s := newService(dir)
	s.demo, s.links = true, login.NewLinks(nil)
	if err := s.start(t.Context()); err != nil {
		t.Fatal(errors.Join(err, s.stop()))
	}
	t.Cleanup(func() {
		assert.NoError(t, s.stop())
	})
	var said strings.Builder
	require.NoError(t, s.greet(&said))
	return s, said.String()
}

// standing counts where the instances of a workflow stand that a user sees, by node.
func (s *service) standing(t *testing.T, workflow string, user identity.UserID) map[string]int {
	t.Helper()
	found := map[string]int{}
	ask := &query.Request{Caller: s.identities.Directory().Principal(user), WorkflowID: workflow}
	_, err := s.router.Queries.Query(t.Context(), ask, func(item []byte) error {
		var i struct {
			States []struct{ StateMachineID, NodeID string }
		}
		err := json.Unmarshal(item, &i)
		for _, at := range i.States {
			found[at.StateMachineID+"/"+at.NodeID]++
		}
		return err
	})
	require.NoError(t, err)
	return found
}

// TestDemoHasEveryState: somebody who looks at the example finds each state of each workflow, and
// a second start makes nothing more.
func TestDemoHasEveryState(t *testing.T) {
	t.Parallel()
	dir := clitest.ExampleHome(t)
	s, said := startDemo(t, dir)
	assert.Contains(t, said, "45 example requests were created")
	for workflow, reader := range map[string]identity.UserID{"leave-request": "mary.major", "purchase-order": "mary.major", "stock-take": "paulo.santos"} {
		d, err := s.catalog.Newest(workflow)
		require.NoError(t, err)
		missing := func() (nodes []string) {
			found := s.standing(t, workflow, reader)
			for _, at := range d.LeafNodes() {
				name := string(at.Machine) + "/" + string(at.Node)
				if found[name] == 0 && name != "approval/checking" { // which orders only go through
					nodes = append(nodes, name)
				}
			}
			return nodes
		}
		for at := missing(); len(at) > 0; at = missing() {
			if len(at) > 1 || !strings.HasSuffix(at[0], "/overdue") { // its timers fire once the service runs
				t.Fatalf("%s: nothing stands at %v", workflow, at)
			}
		}
	}
	require.NoError(t, s.stop())
	_, said = startDemo(t, dir)
	assert.True(t, !strings.Contains(said, "example requests were created") && strings.Contains(said, "#link="), "at the second start it says %s", said)
}

// headed is read by somebody who goes when something has come, as head -1 does.
type headed []byte

func (h *headed) Write(p []byte) (int, error) {
	if len(*h) > 0 {
		return 0, syscall.EPIPE
	}
	*h = bytes.Clone(p)
	return len(p), nil
}

// TestLinksOfAFirstStart: each link signs its person in, once. What a shell has to be told is there as it takes it.
func TestLinksOfAFirstStart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "my home")
	_, err := homedir.Ensure(dir, clitest.Example())
	require.NoError(t, err)
	s := newService(dir)
	s.config.Gateway.BasePath, s.links = "/platform", login.NewLinks(nil)
	if err := s.start(t.Context()); err != nil {
		t.Fatal(errors.Join(err, s.stop()))
	}
	defer func() {
		assert.NoError(t, s.stop())
	}()
	var said headed
	require.NoError(t, s.greet(&said))
	base := "http://" + s.gateway.Addr().String() + "/platform"
	first, _, _ := strings.Cut(string(said), "\n")
	assert.Equal(t, "troupe is ready at "+base, first, "got the line")
	want := " token create --home '" + dir + "' --user john.doe)"
	assert.Contains(t, string(said), want, "got no line")
	links := regexp.MustCompile(regexp.QuoteMeta(base)+`/login(\S*)#link=(\S+)`).FindAllStringSubmatch(string(said), -1)
	require.Len(t, links, 3, said)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for i, want := range []string{`"user":"john.doe","name":"John Doe","roles":["employee","inspector"]`, `"user":"mary.major"`, `"user":"olivia.park","name":"Olivia Park","roles":["operator"],"privileges":["mod-admin","mod-form-portal","mod-workflows"]`} {
		for _, status := range []int{http.StatusOK, http.StatusUnauthorized} {
			answer, err := client.Post(base+"/session", "application/json", strings.NewReader(`{"link":"`+links[i][2]+`"}`))
			require.NoError(t, err)
			body, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if err != nil || answer.StatusCode != status || status == http.StatusOK && !strings.Contains(string(body), want) {
				t.Errorf("%s: got %d %s, %v, want %d with %s", links[i][0], answer.StatusCode, body, err, status, want)
			}
		}
	}
	assert.Equal(t, "?next=%2Fplatform%2Foperations", links[2][1], "the operator begins")
}

// TestGreetingSaysWhatAPersonCanDo: a later start says its address alone, and an address that
// others reach has no links.
func TestGreetingSaysWhatAPersonCanDo(t *testing.T) {
	s := newService(bareHome(t))
	defer func() { _ = s.stop() }()
	require.NoError(t, s.listen())
	var said strings.Builder
	err := s.greet(&said)
	assert.True(t, err == nil && strings.Count(said.String(), "\n") == 1, "a later start says %s, %v", &said, err)
	if said := (&demo.Greeting{Home: "h", Address: "http://localhost:80"}).Text(); strings.Contains(said, "#link") || !strings.Contains(said, "no sign-in links, because other machines") {
		t.Errorf("an address that others reach: it says %s", said)
	}
	for address, want := range map[string]string{"0.0.0.0:80": "http://localhost:80", "[::]:80": "http://localhost:80", "[::1]:80": "http://[::1]:80", "192.0.2.1:80": "http://192.0.2.1:80"} {
		a, err := net.ResolveTCPAddr("tcp", address)
		require.NoError(t, err)
		assert.Equal(t, want, addressOf(a, false), address)
	}
}
