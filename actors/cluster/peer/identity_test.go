package peer

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAccept(t *testing.T) {
	a, elsewhere := newAuthority(testCluster), newAuthority("01J0000000000000000000000D")
	again := newAuthority(testCluster)
	i, good := identify(a, nodeID(1), time.Now())
	sign := func(a *Authority, at time.Time) []byte { return must(a.Sign(must(i.CSR()), nodeID(1), at)) }
	_, err := i.Marshal()
	assert.True(t, errors.Is(err, ErrNoCertificate) && i.NeedsRenewal(time.Now()) && i.Cluster() == "" && i.Expires().IsZero(), err)
	_, other := identify(a, nodeID(2), time.Now())
	_, otherKey := identify(a, nodeID(1), time.Now())
	refused := func(name string, certificate, authority []byte, want error) {
		t.Helper()
		err := i.Accept(certificate, authority)
		assert.True(t, err != nil && (want == nil || errors.Is(err, want)), "%s: got %v, want %v", name, err, want)
	}
	refused("bytes", []byte("x"), a.Certificate(), nil)
	refused("another node's", other, a.Certificate(), ErrOtherNode)
	refused("for another key", otherKey, a.Certificate(), nil)
	refused("another authority's", good, again.Certificate(), ErrNotIssued)
	refused("an authority of bytes", good, []byte("x"), nil)
	refused("no authority", good, nil, nil)
	refused("the authority's own", a.Certificate(), a.Certificate(), ErrOtherNode)
	refused("expired", sign(a, time.Now().Add(-91*24*time.Hour)), a.Certificate(), ErrExpired)
	refused("of a clock an hour ahead", sign(a, time.Now().Add(time.Hour)), a.Certificate(), ErrExpired)
	assert.NoError(t, i.Accept(sign(a, time.Now().Add(9*time.Minute)), a.Certificate()), "a clock 9 minutes ahead")
	refused("of another cluster than before", sign(elsewhere, time.Now()), elsewhere.Certificate(), ErrOtherCluster)
	err = i.Accept(good, again.Certificate(), a.Certificate())
	assert.True(t, err == nil && i.Cluster() == testCluster, "two authorities: got %v in %s", err, i.Cluster())
	assert.Len(t, must(ParseIdentity(must(i.Marshal()))).held.Load().trust.authorities, 2, "of two authorities")
}

func TestNeedsRenewalAfterTwoThirds(t *testing.T) {
	a, now := newAuthority(testCluster), time.Now()
	i := member(a, nodeID(1))
	life := nodeLife + clockSkewMax
	want := now.Add(nodeLife)
	assert.LessOrEqual(t, i.Expires().Sub(want).Abs(), time.Minute, "got an end on %s, want %s", i.Expires(), want)
	begin := i.Expires().Add(-life)
	for after, want := range map[time.Duration]bool{-time.Hour: true, 0: false, life*2/3 - time.Minute: false, life*2/3 + time.Minute: true, 2 * life: true} {
		assert.Equal(t, want, i.NeedsRenewal(begin.Add(after)), "%s after its begin", after)
	}
}

func TestSave(t *testing.T) {
	a := newAuthority(testCluster)
	i := member(a, nodeID(1))
	path := filepath.Join(t.TempDir(), "identity")
	require.NoError(t, os.WriteFile(path+".tmp", []byte("of a crash"), 0o644))
	for range 2 { // the second replaces the first
		require.NoError(t, i.Save(path))
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("got the mode %v, %v, want 0600", info.Mode(), err)
		}
		got, err := LoadIdentity(path)
		assert.True(t, err == nil && bytes.Equal(must(got.Marshal()), must(i.Marshal())) && got.Node() == nodeID(1), "got %v, want what was saved", err)
		_, err = os.Stat(path + ".tmp")
		assert.ErrorIs(t, err, os.ErrNotExist, "the file beside")
		require.NoError(t, i.Accept(must(a.Sign(must(i.CSR()), nodeID(1), time.Now())), a.Certificate()))
	}
	assert.Error(t, i.Save(filepath.Join(path, "x")), "saved below a file")
	_, err := LoadIdentity(path + "x")
	assert.ErrorIs(t, err, os.ErrNotExist, "no file")
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	_, err = LoadIdentity(path)
	assert.ErrorIs(t, err, ErrCorrupt, "a damaged file")
}

// TestIdentityOutlivesItsCertificate holds that a node that was off for long can load
// its key and be signed anew.
func TestIdentityOutlivesItsCertificate(t *testing.T) {
	a := newAuthority(testCluster)
	old := forced(a, nodeID(1), time.Now().Add(-200*24*time.Hour))
	i, err := ParseIdentity(must(old.Marshal()))
	require.NoError(t, err)
	assert.NoError(t, i.Accept(must(a.Sign(must(i.CSR()), i.Node(), time.Now())), a.Certificate()))
}
