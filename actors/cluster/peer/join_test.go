package peer

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/clocktest"
)

// TestJoin is the whole way of a node into a cluster: a key that was copied, a request
// that is signed, and calls by the certificate.
func TestJoin(t *testing.T) {
	type request struct {
		Key, Secret string
		Node        NodeID
		CSR         []byte
	}
	type answer struct{ Certificate, Authority []byte }
	a, at := newAuthority(testCluster), &addresses{}
	var hash, id string // what the cluster keeps of the key
	one, _ := startPort(t, member(a, nodeID(1)), at, func(o *Options) {
		o.Calls = whoAsks
		o.Join = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var asked request
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Key != id || Hash(asked.Secret) != hash {
				http.Error(w, "no such key", http.StatusForbidden)
				return
			}
			_ = json.NewEncoder(w).Encode(answer{must(a.Sign(asked.CSR, asked.Node, time.Now())), a.Certificate()})
		})
	})
	made := must(NewJoinKey(one.Addr().String(), a.Fingerprint()))
	hash, id = Hash(made.Secret), made.ID
	key, err := ParseJoinKey(made.String())
	require.NoError(t, err)

	i := must(NewIdentity(nodeID(2)))
	join := func(key JoinKey) (given answer, status int, err error) {
		body := must(json.Marshal(request{key.ID, key.Secret, i.Node(), must(i.CSR())}))
		got, err := JoinClient(key).Post("https://join/", "application/json", bytes.NewReader(body))
		if err != nil {
			return answer{}, 0, err
		}
		defer func() { _ = got.Body.Close() }()
		if got.StatusCode == http.StatusOK {
			err = json.NewDecoder(got.Body).Decode(&given)
		}
		return given, got.StatusCode, err
	}
	if _, status, err := join(must(NewJoinKey(key.Address, key.Authority))); err != nil || status != http.StatusForbidden {
		t.Errorf("another secret: got %d, %v", status, err)
	}
	forged := key
	forged.Authority[0] ^= 1
	_, _, err = join(forged)
	assert.True(t, errors.Is(err, ErrNotIssued) && strings.Contains(err.Error(), key.Address), "another fingerprint: got %v, want ErrNotIssued", err)
	given, status, err := join(key)
	require.NoError(t, err, status)
	require.NoError(t, i.Accept(given.Certificate, given.Authority))
	two, _ := startPort(t, i, at, nil)
	got, err := call(t.Context(), two, nodeID(1), "/in")
	assert.True(t, err == nil && got == string(nodeID(2))+" HTTP/2.0 /in", "got %q, %v", got, err)
	// The second takes no joins.
	_, _, err = join(must(NewJoinKey(two.Addr().String(), a.Fingerprint())))
	assert.Error(t, err, "a port without Join has answered")
	_ = two.Stop(ended())
	_, err = DialJoin(t.Context(), must(NewJoinKey(two.Addr().String(), a.Fingerprint())))
	assert.True(t, err != nil && strings.HasPrefix(err.Error(), "join by way of "+two.Addr().String()+": "), "nobody listens: got %v", err)
}

// TestJoinBounds: one small request on a connection, and a few at once.
func TestJoinBounds(t *testing.T) {
	a, at := newAuthority(testCluster), &addresses{}
	came, answer := make(chan int, 100), make(chan struct{})
	one, log := startPort(t, member(a, nodeID(1)), at, func(o *Options) {
		o.Log = o.Log.Level(-1)
		o.Join = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			if err != nil {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				return
			}
			came <- int(n)
			<-answer
		})
	})
	key := must(NewJoinKey(one.Addr().String(), a.Fingerprint()))
	post := func(bytes int) int {
		for { // a place becomes free a moment after the answer
			got, err := JoinClient(key).Post("https://join/", "text/plain", strings.NewReader(strings.Repeat("x", bytes)))
			if err == nil {
				_ = got.Body.Close()
				return got.StatusCode
			}
		}
	}
	dial := func() net.Conn {
		t.Helper()
		c, err := DialJoin(t.Context(), key)
		require.NoError(t, err)
		_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: join\r\nContent-Length: 2\r\n\r\nhi")
		return c
	}
	var open []net.Conn
	for range joinsMax {
		open = append(open, dial())
		n := <-came
		assert.Equal(t, 2, n, "a body")
	}
	beyond := dial()
	log.await(t, "others are joining")
	text, _ := io.ReadAll(beyond)
	assert.Empty(t, text, "beyond the bound")
	_ = beyond.Close()
	close(answer)
	for _, c := range open {
		text, _ := io.ReadAll(c) // until the port closes it: one request is all
		assert.True(t, strings.HasPrefix(string(text), "HTTP/1.1 200 ") && strings.Contains(string(text), "Connection: close"), "got %q", text)
		_ = c.Close()
	}
	assert.Equal(t, uint64(1), one.Metrics().JoinsRefused)
	for bytes, want := range map[int]int{joinBytesMax: http.StatusOK, joinBytesMax + 1: http.StatusRequestEntityTooLarge} {
		assert.Equal(t, want, post(bytes), "a body of %d bytes", bytes)
	}
}

// TestSlowJoin holds that who joins cannot keep a place.
func TestSlowJoin(t *testing.T) {
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	inBubble(t, func(o *Options) { o.Join = handler }, func(t *testing.T, n *network, one, _ *Port) {
		for _, text := range []string{"", "POST / HTTP/1.1\r\nHos", "POST / HTTP/1.1\r\nHost: join\r\nContent-Length: 9\r\n\r\nx"} {
			inner, err := n.dial("10.0.0.3", addressOne)
			require.NoError(t, err)
			c := tls.Client(inner, verifiedConfig(protocolJoin, func(tls.ConnectionState) error { return nil }))
			_, err = io.WriteString(c, text)
			require.NoError(t, err)
			if text == "" {
				_ = c.Handshake()
			}
			assert.LessOrEqual(t, closedAfter(c), joinMax, "%q: closed", text)
			_ = c.Close()
		}
		clocktest.Advance(time.Second)
		m := one.Metrics()
		assert.True(t, m.Connections == 0 && len(one.joinPlaces) == 0, "got %+v and %d places taken, want none", m, len(one.joinPlaces))
	})
}
